//! Functions of the module whose body is an expression.

/// Exports functions: their arguments as Python passes them, and the call.
macro_rules! export {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $value:expr;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            pub(crate) fn $name($($argument: $type),*) -> $result {
                $value
            }
        )*
    };
}
pub(crate) use export;

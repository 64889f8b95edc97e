//! From a text to its law, and to its canonical form.

use crate::token::Token;
use crate::{Diagnostic, Equation, Law, canonical, compile, mathml, syntax, token};
use alloc::string::String;
use alloc::vec::Vec;

impl Law {
    /// Reads a law.
    ///
    /// ```
    /// use cwnd_law::{Hook, Input, Law};
    ///
    /// let law = Law::parse(
    ///     r#"
    /// law gentle "AIMD(1, beta)"
    /// parameter beta = 1/4 in (0, 1) "reduction at a loss as a fraction of the window"
    ///
    /// on grow:
    ///     return w + acked / w
    ///
    /// on cut:
    ///     return w - beta * w
    /// "#,
    /// )
    /// .unwrap();
    /// let mut instance = law.instance(&[0.5]);
    /// let cut = instance.call(Hook::Cut, |input| (input == Input::W).then_some(20.0));
    /// assert_eq!(cut, Some(10.0));
    /// ```
    ///
    /// # Errors
    /// The first fault of the text.
    pub fn parse(text: &str) -> Result<Law, Diagnostic> {
        law(text, token::tokens(text)?)
    }
}

/// The law of a text with these tokens.
fn law(text: &str, mut tokens: Vec<Token<'_>>) -> Result<Law, Diagnostic> {
    let (hash, equations) = (canonical::hash(&tokens), canonical::equations(&tokens));
    token::remove_comments(&mut tokens);
    Ok(Law { hash, equations, text: text.into(), ..compile::law(&syntax::file(&tokens)?)? })
}

/// The text with its lines indented by four blanks, one blank between words, and no blank lines but
/// between items; comments stay.
///
/// # Errors
/// The first fault of the text, or that its canonical form is too long.
pub fn format(text: &str) -> Result<String, Diagnostic> {
    let tokens = token::tokens(text)?;
    let form = canonical::form(text, &tokens);
    law(text, tokens)?;
    form
}

/// The hooks and named expressions of a law as MathML, in the order of its text.
///
/// ```
/// let text = r#"
/// law gentle "AIMD(1, 1/4)"
/// on grow:
///     return w + acked / w
/// on cut:
///     return 3 * w / 4
/// "#;
/// let equations = cwnd_law::equations(text).unwrap();
/// assert_eq!(equations[0].hook.as_deref(), Some("grow"));
/// assert!(equations[0].mathml.contains("<mfrac>"));
/// ```
///
/// # Errors
/// The first fault of the text.
pub fn equations(text: &str) -> Result<Vec<Equation>, Diagnostic> {
    let mut tokens = token::tokens(text)?;
    token::remove_comments(&mut tokens);
    let file = syntax::file(&tokens)?;
    compile::law(&file)?;
    Ok(mathml::equations(&file, &tokens))
}

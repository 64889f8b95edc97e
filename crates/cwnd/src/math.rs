//! The few transcendental functions the laws need, from the pinned `libm` so that results are
//! bit-equal on every machine; from the standard library when that feature is off.

#[cfg(feature = "libm")]
mod imp {
    pub fn powf(x: f64, y: f64) -> f64 {
        libm::pow(x, y)
    }
    pub fn ln(x: f64) -> f64 {
        libm::log(x)
    }
    pub fn log10(x: f64) -> f64 {
        libm::log10(x)
    }
    pub fn exp(x: f64) -> f64 {
        libm::exp(x)
    }
    pub fn cbrt(x: f64) -> f64 {
        libm::cbrt(x)
    }
    pub fn sqrt(x: f64) -> f64 {
        libm::sqrt(x)
    }
    pub fn ceil(x: f64) -> f64 {
        libm::ceil(x)
    }
    pub fn floor(x: f64) -> f64 {
        libm::floor(x)
    }
}

#[cfg(not(feature = "libm"))]
mod imp {
    pub fn powf(x: f64, y: f64) -> f64 {
        x.powf(y)
    }
    pub fn ln(x: f64) -> f64 {
        x.ln()
    }
    pub fn log10(x: f64) -> f64 {
        x.log10()
    }
    pub fn exp(x: f64) -> f64 {
        x.exp()
    }
    pub fn cbrt(x: f64) -> f64 {
        x.cbrt()
    }
    pub fn sqrt(x: f64) -> f64 {
        x.sqrt()
    }
    pub fn ceil(x: f64) -> f64 {
        x.ceil()
    }
    pub fn floor(x: f64) -> f64 {
        x.floor()
    }
}

pub(crate) use imp::*;

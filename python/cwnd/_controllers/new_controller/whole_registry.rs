//! The registry's entries of the whole controllers.

use super::card::card;
use super::{Algorithm, Build, Parameter, Range};
use crate::controllers::$Type;
use alloc::boxed::Box;

//! Steps.
use super::colors::Colors;
use super::markup::Markup;
use crate::report::model::Report;

pub fn write(_page: &mut Markup, _report: &Report, _colors: &Colors) {}

//! Dividing a model among devices.
//!
//! | module | what it does |
//! |---|---|
//! | [`support`] | asks devices which operations they can do |
//! | [`assign`] | decides who does which operation |
//! | [`divide`] | puts operations together into steps |
//! | [`extract`] | makes a part of a model a model |
//! | [`plan`] | the steps, prepared |
//! | [`value`], `plan::buffers` | what passes between them |
//! | [`cache`] | keeps what devices prepared from one process to the next |

mod assign;
pub(crate) mod cache;
mod divide;
mod extract;
pub(crate) mod plan;
pub(crate) mod support;
pub(crate) mod value;

use crate::devices::Device;
use crate::error::{Error, Result};
use crate::model::Model;
use cache::Caching;
use nnhal_hal::{Deadline, ExecutionPreference, Hints, Priority};
use plan::Plan;
use std::sync::Arc;

/// How a model is given to devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Partitioning {
    /// To the fallback device, whole.
    Off,
    /// Each operation to the device that does it best. Where a device fails, its work goes to the
    /// fallback device.
    WithFallback,
    /// Each operation to the device that does it best. Where a device fails, all fails.
    WithoutFallback,
}

impl Partitioning {
    /// Whether work goes elsewhere when a device fails.
    pub fn allows_fallback(self) -> bool {
        self != Self::WithoutFallback
    }
}

/// How to prepare the parts of a model.
#[derive(Debug)]
pub(crate) struct PlanOptions {
    pub(crate) preference: ExecutionPreference,
    pub(crate) priority: Priority,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) caching: Option<Caching>,
    pub(crate) hints: Arc<Hints>,
}

impl PlanOptions {
    fn without_caching(&self) -> Self {
        Self { caching: None, hints: Arc::clone(&self.hints), ..*self }
    }
}

/// Divides a model among devices and prepares each part. Where that fails and may go elsewhere, the
/// whole model goes to the fallback device.
///
/// # Errors
/// `BAD_DATA` if no device can do an operation; what devices answer.
pub(crate) fn compile(
    model: &Model,
    devices: &[Device],
    partitioning: Partitioning,
    options: &PlanOptions,
) -> Result<Plan> {
    let fallback = model.devices().fallback().filter(|_| partitioning.allows_fallback());
    let on_fallback = |fallback: &Device| {
        let options = options.without_caching();
        Plan::new(model, std::slice::from_ref(fallback), None, &options)
    };
    let refused = match (partitioning, fallback) {
        (Partitioning::Off, Some(fallback)) => return on_fallback(fallback),
        (Partitioning::Off, None) => return Err(Error::failed("there are no devices")),
        _ => match Plan::new(model, devices, fallback, options) {
            Ok(plan) => return Ok(plan),
            Err(error) => error,
        },
    };
    match fallback {
        Some(fallback) if !model.has_foreign_operations() => {
            tracing::warn!(error = %refused, "all goes to the fallback device");
            on_fallback(fallback).map_err(|_| refused)
        }
        _ => Err(refused),
    }
}

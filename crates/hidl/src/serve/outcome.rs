//! [`Outcome`]: what an execution answers on the wire.

use super::status::{Answer, NONE};
use crate::convert::Convert;
use crate::v1_2::{OutputShape, Timing};
use nnhal_hal::{Error, ErrorStatus, Execution, ExecutionError, HalVersion};
use std::time::Instant;

/// Status, shapes and times, in the form that goes with the status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) status: i32,
    pub(super) output_shapes: Vec<OutputShape>,
    pub(super) timing: Timing,
}

/// Whether and from when on to measure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measurement {
    pub(super) wanted: bool,
    pub(super) since: Instant,
}

impl Outcome {
    /// An error without shapes and times (contract: GEN-3).
    pub(super) fn failed(version: HalVersion, error: &Error) -> Self {
        let status = Answer::Execution(version).refuse(error);
        Self { status, output_shapes: Vec::new(), timing: Timing::NONE }
    }

    /// What a device's answer is on the wire.
    pub(super) fn of(
        version: HalVersion,
        result: Result<Execution, ExecutionError>,
        measurement: Measurement,
    ) -> Self {
        match result {
            Ok(execution) => Self {
                status: NONE,
                output_shapes: shapes(&execution.output_shapes),
                timing: timing(execution.timing, measurement),
            },
            Err(ExecutionError { error, output_shapes }) => {
                let mut outcome = Self::failed(version, &error);
                if outcome.status == ErrorStatus::OutputInsufficientSize.code() {
                    outcome.output_shapes = shapes(&output_shapes);
                    if outcome.output_shapes.is_empty() && version >= HalVersion::V1_2 {
                        // No one could read it (contract: CB-7).
                        outcome.status = ErrorStatus::GeneralFailure.code();
                    }
                }
                outcome
            }
        }
    }
}

fn shapes(shapes: &[nnhal_hal::OutputShape]) -> Vec<OutputShape> {
    shapes
        .iter()
        .map(|shape| OutputShape {
            dimensions: shape.dimensions.clone(),
            is_sufficient: shape.is_sufficient,
        })
        .collect()
}

/// Times as the client sees them: the driver's ends now, so that waiting for a thread is in it
/// (contract: TIME-3). None unless asked for (TIME-1), nor if they contradict each other (TIME-2).
fn timing(timing: nnhal_hal::Timing, measurement: Measurement) -> Timing {
    if !measurement.wanted {
        return Timing::NONE;
    }
    let in_driver = timing.time_in_driver.map(|_| measurement.since.elapsed());
    consistent(nnhal_hal::Timing { time_in_driver: in_driver, ..timing })
}

/// Times in microseconds; none if the device's exceeds the driver's (contract: TIME-2).
pub(super) fn consistent(timing: nnhal_hal::Timing) -> Timing {
    match (timing.time_on_device, timing.time_in_driver) {
        (Some(device), Some(driver)) if device > driver => Timing::NONE,
        _ => Timing::from_canonical(&timing).unwrap_or(Timing::NONE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn outcome(version: HalVersion, status: ErrorStatus, shapes: usize) -> Outcome {
        let shape = nnhal_hal::OutputShape { dimensions: vec![2], is_sufficient: false };
        let error =
            ExecutionError { error: Error::new(status, "x"), output_shapes: vec![shape; shapes] };
        let measurement = Measurement { wanted: true, since: Instant::now() };
        Outcome::of(version, Err(error), measurement)
    }

    /// GEN-3
    #[test]
    fn shape_1_and_time_1_errors_come_alone() {
        for status in [ErrorStatus::InvalidArgument, ErrorStatus::MissedDeadlineTransient] {
            let found = outcome(HalVersion::V1_3, status, 1);
            assert_eq!(found.status, status.code());
            assert_eq!((found.output_shapes.len(), found.timing), (0, Timing::NONE));
        }
    }

    #[test]
    fn cb_7_too_short_comes_with_shapes_or_is_a_failure() {
        let small = ErrorStatus::OutputInsufficientSize;
        let found = outcome(HalVersion::V1_2, small, 1);
        assert_eq!((found.status, found.output_shapes.len()), (small.code(), 1));
        let failure = ErrorStatus::GeneralFailure.code();
        assert_eq!(outcome(HalVersion::V1_2, small, 0).status, failure);
        // 1.0 has no shapes to give (contract: EXEC-10).
        assert_eq!(outcome(HalVersion::V1_0, small, 0).status, small.code());
    }

    #[test]
    fn time_1_to_3_times_are_given_when_asked_for_and_in_order() {
        let since = Instant::now();
        let execution = |device: u64, driver: Option<u64>| Execution {
            output_shapes: vec![],
            timing: nnhal_hal::Timing {
                time_on_device: Some(Duration::from_micros(device)),
                time_in_driver: driver.map(Duration::from_micros),
            },
        };
        let timing = |execution, wanted| {
            let measurement = Measurement { wanted, since };
            Outcome::of(HalVersion::V1_2, Ok(execution), measurement).timing
        };
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(timing(execution(1, Some(2)), false), Timing::NONE);
        let found = timing(execution(1, Some(2)), true);
        assert_eq!(found.time_on_device, 1);
        assert!((5_000..20_000_000).contains(&found.time_in_driver), "{found:?}");
        let found = timing(execution(1, None), true);
        assert_eq!(found, Timing { time_on_device: 1, time_in_driver: u64::MAX });
        assert_eq!(timing(execution(u64::MAX / 2, Some(2)), true), Timing::NONE);
    }
}

//! Bursts.

use super::answer::{answered, ask, expect_none, expect_some};
use super::callbacks::ExecutionAnswer;
use super::judging::{expect_expressible, judge};
use crate::checks::Outputs;
use crate::convert::Convert;
use crate::fmq::MQDescriptor;
use crate::memory::HidlMemory;
use crate::transport::Return;
use crate::v1_2::{IBurstCallback, IBurstContext, IPreparedModel, Timing};
use nnhal_burst::{BurstClient, Connection, QUEUE_CAPACITY};
use nnhal_hal::{ErrorStatus, Execution, ExecutionError, HalVersion, Memory, Request};
use std::sync::Arc;

const METHOD: &str = "configureExecutionBurst";

/// Begins a burst with a driver.
pub(super) fn configure(
    driver: Arc<dyn IPreparedModel>,
    outputs: Outputs,
) -> nnhal_hal::Result<Burst> {
    let connection = Connection::new(QUEUE_CAPACITY)?;
    let callback: Arc<dyn IBurstCallback> = Arc::new(Callback(connection.callback()));
    let requests = MQDescriptor::from(connection.requests().descriptor()?);
    let results = MQDescriptor::from(connection.results().descriptor()?);
    let (status, context) =
        ask(METHOD, || driver.configure_execution_burst(Some(callback), &requests, &results))?;
    expect_none(METHOD, status)?;
    let context = expect_some(METHOD, "burst context", context)?;
    Ok(Burst { client: connection.connect(Context(context)), outputs, _driver: driver })
}

/// A burst with a driver. Its results are judged as those of other executions.
pub(super) struct Burst {
    client: BurstClient,
    outputs: Outputs,
    /// The driver need not keep a model for a burst.
    _driver: Arc<dyn IPreparedModel>,
}

impl nnhal_hal::Burst for Burst {
    fn execute(&self, request: &Request, measure: bool) -> Result<Execution, ExecutionError> {
        let method = "the burst";
        // In the words of 1.2 (contract: BURST-14).
        expect_expressible(request, HalVersion::V1_2, &self.outputs)
            .map_err(nnhal_hal::Error::from)?;
        let answer = match self.client.execute(request, measure) {
            Ok(Execution { output_shapes, timing }) => ExecutionAnswer {
                status: ErrorStatus::None.code(),
                output_shapes: shapes(&output_shapes)?,
                timing: Timing::from_canonical(&timing).map_err(nnhal_hal::Error::from)?,
            },
            Err(failed) if failed.error.status() == ErrorStatus::OutputInsufficientSize => {
                ExecutionAnswer {
                    status: failed.error.status().code(),
                    output_shapes: shapes(&failed.output_shapes)?,
                    timing: Timing::NONE,
                }
            }
            // Statuses that bursts do not have (contract: GEN-2).
            Err(failed) if failed.error.status().since() > HalVersion::V1_2 => {
                return Err(answered(method, ErrorStatus::GeneralFailure).into());
            }
            Err(failed) => return Err(failed.error.into()),
        };
        judge(method, answer, request, measure, &self.outputs)
    }

    fn free_memory(&self, memory: &Memory) {
        self.client.free_memory(memory);
    }
}

fn shapes(shapes: &[nnhal_hal::OutputShape]) -> nnhal_hal::Result<Vec<crate::v1_2::OutputShape>> {
    shapes.iter().map(|shape| Ok(Convert::from_canonical(shape)?)).collect()
}

/// The driver's end.
struct Context(Arc<dyn IBurstContext>);

impl nnhal_burst::BurstContext for Context {
    fn free_memory(&self, slot: i32) {
        if let Err(error) = ask("freeMemory", || self.0.free_memory(slot)) {
            tracing::debug!(%error, slot, "a slot could not be freed");
        }
    }

    fn is_alive(&self) -> bool {
        ask("ping", || self.0.ping()).is_ok()
    }
}

/// This end, which gives the memory of slots as HIDL passes it (contract: BURST-8).
struct Callback(Arc<dyn nnhal_burst::BurstCallback>);

impl IBurstCallback for Callback {
    fn get_memories(&self, slots: &[i32]) -> Return<(i32, Vec<HidlMemory>)> {
        let memories = self.0.get_memories(slots).and_then(|memories| {
            memories.iter().map(|memory| Ok(Convert::from_canonical(memory)?)).collect()
        });
        Ok(match memories {
            Ok(memories) => (ErrorStatus::None.code(), memories),
            Err(error) => {
                let status = match error.status() {
                    ErrorStatus::InvalidArgument => ErrorStatus::InvalidArgument,
                    // It has no DEVICE_UNAVAILABLE (contract: GEN-1).
                    _ => ErrorStatus::GeneralFailure,
                };
                (status.code(), Vec::new())
            }
        })
    }
}

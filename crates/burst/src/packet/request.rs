//! [`RequestPacket`]

use super::{Cursor, PacketError, count};
use crate::datum::{FmqRequestDatum, OperandInformation, RequestDatum};
use nnhal_hal::{MeasureTiming, RequestArgument};

/// A request as a packet carries it: in place of pools the slots that stand for them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestPacket {
    /// One for each input; their pools are indexes into `slots`.
    pub inputs: Vec<RequestArgument>,
    /// One for each output.
    pub outputs: Vec<RequestArgument>,
    /// The pools.
    pub slots: Vec<i32>,
    /// Whether to measure.
    pub measure: bool,
}

impl RequestPacket {
    /// How many data a packet for these arguments and this number of pools has; saturates.
    pub fn length(inputs: &[RequestArgument], outputs: &[RequestArgument], pools: usize) -> usize {
        let arguments = inputs.iter().chain(outputs);
        arguments
            .fold(2_usize, |sum, argument| sum.saturating_add(1 + argument.dimensions.len()))
            .saturating_add(pools)
    }

    /// Writes a packet in the place of what `data` holds (contract: BURST-3).
    ///
    /// # Errors
    /// [`PacketError::TooMany`]
    pub fn encode(
        inputs: &[RequestArgument],
        outputs: &[RequestArgument],
        slots: &[i32],
        measure: bool,
        data: &mut Vec<FmqRequestDatum>,
    ) -> Result<(), PacketError> {
        data.clear();
        let first = RequestDatum::PacketInformation {
            packet_size: count(Self::length(inputs, outputs, slots.len()))?,
            inputs: count(inputs.len())?,
            outputs: count(outputs.len())?,
            pools: count(slots.len())?,
        };
        data.push(first.into());
        for argument in inputs {
            data.push(RequestDatum::Input(information(argument)?).into());
            let dimensions = argument.dimensions.iter();
            data.extend(dimensions.map(|value| RequestDatum::InputDimension(*value)).map(datum));
        }
        for argument in outputs {
            data.push(RequestDatum::Output(information(argument)?).into());
            let dimensions = argument.dimensions.iter();
            data.extend(dimensions.map(|value| RequestDatum::OutputDimension(*value)).map(datum));
        }
        data.extend(slots.iter().map(|slot| RequestDatum::Pool(*slot)).map(datum));
        let measure = if measure { MeasureTiming::Yes } else { MeasureTiming::No };
        data.push(RequestDatum::MeasureTiming(measure.code()).into());
        Ok(())
    }

    /// The request in a packet that came from a stranger.
    ///
    /// # Errors
    /// [`PacketError`], for every packet that [`RequestPacket::encode`] would not have written.
    pub fn decode(data: &[FmqRequestDatum]) -> Result<Self, PacketError> {
        let mut cursor = Cursor::new(data);
        let (packet_size, inputs, outputs, pools) =
            cursor.next("packetInformation", |datum| match datum {
                RequestDatum::PacketInformation { packet_size, inputs, outputs, pools } => {
                    Some((packet_size, inputs, outputs, pools))
                }
                _ => None,
            })?;
        // Besides these the first datum and the last.
        let needed = 2 + [inputs, outputs, pools].into_iter().map(u64::from).sum::<u64>();
        cursor.check_size(packet_size, needed)?;
        let inputs = (0..inputs)
            .map(|_| {
                let information = cursor.next("inputOperandInformation", |datum| match datum {
                    RequestDatum::Input(information) => Some(information),
                    _ => None,
                })?;
                let dimensions = cursor.next_values(
                    information.dimensions,
                    "inputOperandDimensionValue",
                    |datum| match datum {
                        RequestDatum::InputDimension(value) => Some(value),
                        _ => None,
                    },
                )?;
                Ok(argument(information, dimensions))
            })
            .collect::<Result<_, _>>()?;
        let outputs = (0..outputs)
            .map(|_| {
                let information = cursor.next("outputOperandInformation", |datum| match datum {
                    RequestDatum::Output(information) => Some(information),
                    _ => None,
                })?;
                let dimensions = cursor.next_values(
                    information.dimensions,
                    "outputOperandDimensionValue",
                    |datum| match datum {
                        RequestDatum::OutputDimension(value) => Some(value),
                        _ => None,
                    },
                )?;
                Ok(argument(information, dimensions))
            })
            .collect::<Result<_, _>>()?;
        let slots = cursor.next_values(pools, "poolIdentifier", |datum| match datum {
            RequestDatum::Pool(slot) => Some(slot),
            _ => None,
        })?;
        let code = cursor.next("measureTiming", |datum| match datum {
            RequestDatum::MeasureTiming(code) => Some(code),
            _ => None,
        })?;
        cursor.end()?;
        let measure = MeasureTiming::from_code(code)
            .map_err(|_| PacketError::MeasureTiming { found: code })?;
        Ok(Self { inputs, outputs, slots, measure: measure == MeasureTiming::Yes })
    }
}

fn datum(datum: RequestDatum) -> FmqRequestDatum {
    datum.into()
}

fn information(argument: &RequestArgument) -> Result<OperandInformation, PacketError> {
    Ok(OperandInformation {
        has_no_value: argument.has_no_value,
        location: argument.location,
        dimensions: count(argument.dimensions.len())?,
    })
}

fn argument(information: OperandInformation, dimensions: Vec<u32>) -> RequestArgument {
    let OperandInformation { has_no_value, location, .. } = information;
    RequestArgument { has_no_value, location, dimensions }
}

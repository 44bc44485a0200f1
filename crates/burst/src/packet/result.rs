//! [`ResultPacket`]

use super::{Cursor, PacketError, count};
use crate::datum::{FmqResultDatum, ResultDatum};
use nnhal_hal::{ErrorStatus, HalVersion, OutputShape, Timing};

/// A result as a packet carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultPacket {
    /// What became of the execution; a status of 1.2.
    pub status: ErrorStatus,
    /// With `NONE` none or one per output, with `OUTPUT_INSUFFICIENT_SIZE` one per output.
    pub output_shapes: Vec<OutputShape>,
    /// Nothing measured except with `NONE`.
    pub timing: Timing,
}

impl ResultPacket {
    /// How many data a packet without shapes has.
    pub const LENGTH_WITHOUT_SHAPES: usize = 2;

    /// A result without shapes and times. A status that 1.2 does not have becomes
    /// `GENERAL_FAILURE` (contract: GEN-2).
    pub fn failed(status: ErrorStatus) -> Self {
        let status = status.in_version(HalVersion::V1_2);
        Self { status, output_shapes: Vec::new(), timing: Timing::NONE }
    }

    /// How many data the packet has; saturates.
    pub fn length(&self) -> usize {
        let shapes = self.output_shapes.iter();
        shapes.fold(Self::LENGTH_WITHOUT_SHAPES, |sum, shape| {
            sum.saturating_add(1 + shape.dimensions.len())
        })
    }

    /// Writes a packet in the place of what `data` holds (contract: BURST-4).
    ///
    /// # Errors
    /// [`PacketError::TooMany`]
    pub fn encode(&self, data: &mut Vec<FmqResultDatum>) -> Result<(), PacketError> {
        data.clear();
        let first = ResultDatum::PacketInformation {
            packet_size: count(self.length())?,
            status: self.status.code(),
            outputs: count(self.output_shapes.len())?,
        };
        data.push(first.into());
        for OutputShape { dimensions, is_sufficient } in &self.output_shapes {
            let (is_sufficient, rank) = (*is_sufficient, count(dimensions.len())?);
            data.push(ResultDatum::Output { is_sufficient, dimensions: rank }.into());
            let dimensions = dimensions.iter().map(|value| ResultDatum::OutputDimension(*value));
            data.extend(dimensions.map(FmqResultDatum::from));
        }
        let (time_on_device, time_in_driver) = self.timing.to_microseconds();
        data.push(ResultDatum::Timing { time_on_device, time_in_driver }.into());
        Ok(())
    }

    /// The result in a packet that came from a stranger.
    ///
    /// # Errors
    /// [`PacketError`], also for a status that 1.2 does not have, or one that contradicts the
    /// shapes (contract: CB-7). Times that do not belong to the status are dropped (TIME-1).
    pub fn decode(data: &[FmqResultDatum]) -> Result<Self, PacketError> {
        let mut cursor = Cursor::new(data);
        let (packet_size, code, outputs) =
            cursor.next("packetInformation", |datum| match datum {
                ResultDatum::PacketInformation { packet_size, status, outputs } => {
                    Some((packet_size, status, outputs))
                }
                _ => None,
            })?;
        // Besides these the first datum and the last.
        cursor.check_size(packet_size, 2 + u64::from(outputs))?;
        let output_shapes: Vec<_> = (0..outputs)
            .map(|_| {
                let (is_sufficient, rank) =
                    cursor.next("operandInformation", |datum| match datum {
                        ResultDatum::Output { is_sufficient, dimensions } => {
                            Some((is_sufficient, dimensions))
                        }
                        _ => None,
                    })?;
                let dimensions =
                    cursor.next_values(rank, "operandDimensionValue", |datum| match datum {
                        ResultDatum::OutputDimension(value) => Some(value),
                        _ => None,
                    })?;
                Ok(OutputShape { dimensions, is_sufficient })
            })
            .collect::<Result<_, _>>()?;
        let (on_device, in_driver) = cursor.next("executionTiming", |datum| match datum {
            ResultDatum::Timing { time_on_device, time_in_driver } => {
                Some((time_on_device, time_in_driver))
            }
            _ => None,
        })?;
        cursor.end()?;
        let status = ErrorStatus::from_code(code)
            .ok()
            .filter(|status| status.since() <= HalVersion::V1_2)
            .ok_or(PacketError::Status { found: code })?;
        let shapes = output_shapes.len();
        let fits = match status {
            ErrorStatus::None => output_shapes.iter().all(|shape| shape.is_sufficient),
            ErrorStatus::OutputInsufficientSize => shapes > 0,
            _ => shapes == 0,
        };
        if !fits {
            return Err(PacketError::Shapes { status, shapes });
        }
        let timing = match status {
            ErrorStatus::None => Timing::from_microseconds(on_device, in_driver),
            _ => Timing::NONE,
        };
        Ok(Self { status, output_shapes, timing })
    }
}

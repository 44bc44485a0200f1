//! What is in the queues of a burst: [`FmqRequestDatum`] and [`FmqResultDatum`], 24 bytes each.
//!
//! Both are tagged unions. The types with the names of the interface are the bytes, as they come
//! from a stranger; [`RequestDatum`] and [`ResultDatum`] are what they mean, if they mean anything.
//! Whatever is made here has zeros in every byte that no field uses (contract: BURST-13).
//!
//! | `FmqRequestDatum` | tag | at 4 |
//! |---|---|---|
//! | `packetInformation` | 0 | packet size, inputs, outputs, pools (4 x u32) |
//! | `inputOperandInformation` | 1 | no value (u8), at 4: pool, offset, length, rank (4 x u32) |
//! | `inputOperandDimensionValue` | 2 | u32 |
//! | `outputOperandInformation`, `outputOperandDimensionValue` | 3, 4 | as those of inputs |
//! | `poolIdentifier` | 5 | slot (i32) |
//! | `measureTiming` | 6 | code (i32) |
//!
//! | `FmqResultDatum` | tag | at 8 |
//! |---|---|---|
//! | `packetInformation` | 0 | packet size (u32), status (i32), outputs (u32) |
//! | `operandInformation` | 1 | sufficient (u8), at 4: rank (u32) |
//! | `operandDimensionValue` | 2 | u32 |
//! | `executionTiming` | 3 | microseconds on the device, in the driver (2 x u64) |
//!
//! Source: `1.2/types.hal`; contract, IPC-3 and IPC-4. Numbers are in the machine's byte order.

use nnhal_hal::DataLocation;

/// Bytes of a datum of either kind.
pub const DATUM_BYTES: usize = 24;

/// Why 24 bytes are no datum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DatumError {
    /// The union has no member with this tag.
    #[error("tag {found} stands for nothing; the highest is {highest}")]
    Tag {
        /// The tag.
        found: u8,
        /// The highest tag that there is.
        highest: u8,
    },
    /// A truth value is neither 0 nor 1.
    #[error("{field} is {found}, expected 0 or 1")]
    Bool {
        /// Name of the field in the interface files.
        field: &'static str,
        /// The byte.
        found: u8,
    },
}

/// What a datum of a request means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestDatum {
    /// The first of a packet.
    PacketInformation {
        /// Data in the packet, this one too.
        packet_size: u32,
        /// Inputs that follow.
        inputs: u32,
        /// Outputs that follow.
        outputs: u32,
        /// Pools that follow.
        pools: u32,
    },
    /// An input.
    Input(OperandInformation),
    /// One of the input's dimensions.
    InputDimension(u32),
    /// An output.
    Output(OperandInformation),
    /// One of the output's dimensions.
    OutputDimension(u32),
    /// A pool, by the slot that the client gave it.
    Pool(i32),
    /// Whether to measure, as a code of `MeasureTiming` that no one has looked at.
    MeasureTiming(i32),
}

/// An argument of a request without the values of its dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OperandInformation {
    /// Whether the argument is left out.
    pub has_no_value: bool,
    /// Its place; the pool is an index into the slots of the packet.
    pub location: DataLocation,
    /// How many dimensions follow.
    pub dimensions: u32,
}

/// What a datum of a result means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultDatum {
    /// The first of a packet.
    PacketInformation {
        /// Data in the packet, this one too.
        packet_size: u32,
        /// A code of `ErrorStatus` that no one has looked at.
        status: i32,
        /// Output shapes that follow.
        outputs: u32,
    },
    /// The shape of an output.
    Output {
        /// Whether its buffer was long enough.
        is_sufficient: bool,
        /// How many dimensions follow.
        dimensions: u32,
    },
    /// One of the output's dimensions.
    OutputDimension(u32),
    /// The last of a packet: microseconds, `u64::MAX` where not measured.
    Timing {
        /// Computing on the device, in microseconds.
        time_on_device: u64,
        /// From the driver's receiving the request to its answer, in microseconds.
        time_in_driver: u64,
    },
}

macro_rules! datum {
    ($(#[$meta:meta])* $Name:ident, $union:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Default)]
        #[repr(transparent)]
        pub struct $Name([u64; DATUM_BYTES / 8]);

        impl $Name {
            /// The datum that is in these bytes.
            pub fn from_bytes(bytes: [u8; DATUM_BYTES]) -> Self {
                let mut words = [0; DATUM_BYTES / 8];
                for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
                    *word = u64::from_ne_bytes(*bytes);
                }
                Self(words)
            }

            /// Its bytes.
            pub fn to_bytes(self) -> [u8; DATUM_BYTES] {
                let mut bytes = [0; DATUM_BYTES];
                for (word, bytes) in self.0.iter().zip(bytes.as_chunks_mut().0) {
                    *bytes = word.to_ne_bytes();
                }
                bytes
            }

            /// Which member of the union it is, if there is one with this tag.
            pub fn tag(self) -> u8 {
                self.to_bytes()[0]
            }

            /// An empty one with this tag, to be filled by `fields` of the union.
            fn tagged(tag: u8, fields: &[(usize, Field)]) -> Self {
                let mut bytes = [0; DATUM_BYTES];
                bytes[0] = tag;
                for &(offset, field) in fields {
                    field.put(&mut bytes[$union + offset..]);
                }
                Self::from_bytes(bytes)
            }

            /// Four bytes at an offset in the union.
            fn number<const N: usize>(self, offset: usize) -> [u8; N] {
                let bytes = self.to_bytes();
                std::array::from_fn(|index| bytes[$union + offset + index])
            }

            fn u32(self, offset: usize) -> u32 {
                u32::from_ne_bytes(self.number(offset))
            }

            fn i32(self, offset: usize) -> i32 {
                i32::from_ne_bytes(self.number(offset))
            }

            fn bool(self, offset: usize, field: &'static str) -> Result<bool, DatumError> {
                match self.number(offset) {
                    [0] => Ok(false),
                    [1] => Ok(true),
                    [found] => Err(DatumError::Bool { field, found }),
                }
            }
        }

        impl crate::queue::Datum for $Name {
            const WORDS: usize = DATUM_BYTES / 8;

            fn words(&self) -> &[u64] {
                &self.0
            }

            fn words_mut(&mut self) -> &mut [u64] {
                &mut self.0
            }
        }

        impl std::fmt::Debug for $Name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.decode() {
                    Ok(datum) => datum.fmt(formatter),
                    Err(_) => write!(formatter, "{:?}", self.to_bytes()),
                }
            }
        }
    };
}

datum! {
    /// A datum of a request as it is in the queue. Nothing in it has been checked.
    FmqRequestDatum, 4
}
datum! {
    /// A datum of a result as it is in the queue. Nothing in it has been checked.
    FmqResultDatum, 8
}

/// A number in a union.
#[derive(Clone, Copy)]
enum Field {
    U8(u8),
    U32(u32),
    I32(i32),
    U64(u64),
}

impl Field {
    fn put(self, bytes: &mut [u8]) {
        match self {
            Self::U8(number) => bytes[0] = number,
            Self::U32(number) => bytes[..4].copy_from_slice(&number.to_ne_bytes()),
            Self::I32(number) => bytes[..4].copy_from_slice(&number.to_ne_bytes()),
            Self::U64(number) => bytes[..8].copy_from_slice(&number.to_ne_bytes()),
        }
    }
}

impl FmqRequestDatum {
    /// What it means.
    ///
    /// # Errors
    /// [`DatumError`]
    pub fn decode(self) -> Result<RequestDatum, DatumError> {
        Ok(match self.tag() {
            0 => RequestDatum::PacketInformation {
                packet_size: self.u32(0),
                inputs: self.u32(4),
                outputs: self.u32(8),
                pools: self.u32(12),
            },
            1 => RequestDatum::Input(self.operand()?),
            2 => RequestDatum::InputDimension(self.u32(0)),
            3 => RequestDatum::Output(self.operand()?),
            4 => RequestDatum::OutputDimension(self.u32(0)),
            5 => RequestDatum::Pool(self.i32(0)),
            6 => RequestDatum::MeasureTiming(self.i32(0)),
            found => return Err(DatumError::Tag { found, highest: 6 }),
        })
    }

    fn operand(self) -> Result<OperandInformation, DatumError> {
        Ok(OperandInformation {
            has_no_value: self.bool(0, "hasNoValue")?,
            location: DataLocation {
                pool_index: self.u32(4),
                offset: self.u32(8),
                length: self.u32(12),
            },
            dimensions: self.u32(16),
        })
    }
}

impl From<RequestDatum> for FmqRequestDatum {
    fn from(datum: RequestDatum) -> Self {
        use Field::{I32, U8, U32};
        let operand = |tag, operand: OperandInformation| {
            let DataLocation { pool_index, offset, length } = operand.location;
            Self::tagged(
                tag,
                &[
                    (0, U8(operand.has_no_value.into())),
                    (4, U32(pool_index)),
                    (8, U32(offset)),
                    (12, U32(length)),
                    (16, U32(operand.dimensions)),
                ],
            )
        };
        match datum {
            RequestDatum::PacketInformation { packet_size, inputs, outputs, pools } => {
                let numbers = [packet_size, inputs, outputs, pools];
                let fields = [0, 1, 2, 3].map(|index| (4 * index, U32(numbers[index])));
                Self::tagged(0, &fields)
            }
            RequestDatum::Input(information) => operand(1, information),
            RequestDatum::InputDimension(value) => Self::tagged(2, &[(0, U32(value))]),
            RequestDatum::Output(information) => operand(3, information),
            RequestDatum::OutputDimension(value) => Self::tagged(4, &[(0, U32(value))]),
            RequestDatum::Pool(slot) => Self::tagged(5, &[(0, I32(slot))]),
            RequestDatum::MeasureTiming(code) => Self::tagged(6, &[(0, I32(code))]),
        }
    }
}

impl FmqResultDatum {
    /// What it means.
    ///
    /// # Errors
    /// [`DatumError`]
    pub fn decode(self) -> Result<ResultDatum, DatumError> {
        Ok(match self.tag() {
            0 => ResultDatum::PacketInformation {
                packet_size: self.u32(0),
                status: self.i32(4),
                outputs: self.u32(8),
            },
            1 => ResultDatum::Output {
                is_sufficient: self.bool(0, "isSufficient")?,
                dimensions: self.u32(4),
            },
            2 => ResultDatum::OutputDimension(self.u32(0)),
            3 => ResultDatum::Timing {
                time_on_device: u64::from_ne_bytes(self.number(0)),
                time_in_driver: u64::from_ne_bytes(self.number(8)),
            },
            found => return Err(DatumError::Tag { found, highest: 3 }),
        })
    }
}

impl From<ResultDatum> for FmqResultDatum {
    fn from(datum: ResultDatum) -> Self {
        use Field::{I32, U8, U32, U64};
        match datum {
            ResultDatum::PacketInformation { packet_size, status, outputs } => {
                Self::tagged(0, &[(0, U32(packet_size)), (4, I32(status)), (8, U32(outputs))])
            }
            ResultDatum::Output { is_sufficient, dimensions } => {
                Self::tagged(1, &[(0, U8(is_sufficient.into())), (4, U32(dimensions))])
            }
            ResultDatum::OutputDimension(value) => Self::tagged(2, &[(0, U32(value))]),
            ResultDatum::Timing { time_on_device, time_in_driver } => {
                Self::tagged(3, &[(0, U64(time_on_device)), (8, U64(time_in_driver))])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields put where the contract says, everything else 0.
    fn laid_out(tag: u8, fields: &[(usize, &[u8])]) -> [u8; DATUM_BYTES] {
        let mut bytes = [0; DATUM_BYTES];
        bytes[0] = tag;
        for (offset, field) in fields {
            bytes[*offset..offset + field.len()].copy_from_slice(field);
        }
        bytes
    }

    fn check_request(datum: RequestDatum, expected: [u8; DATUM_BYTES]) {
        assert_eq!(FmqRequestDatum::from(datum).to_bytes(), expected, "{datum:?}");
        assert_eq!(FmqRequestDatum::from_bytes(expected).decode(), Ok(datum));
    }

    fn check_result(datum: ResultDatum, expected: [u8; DATUM_BYTES]) {
        assert_eq!(FmqResultDatum::from(datum).to_bytes(), expected, "{datum:?}");
        assert_eq!(FmqResultDatum::from_bytes(expected).decode(), Ok(datum));
    }

    #[test]
    fn ipc_3_a_request_datum_is_laid_out_as_the_interface_says() {
        let [one, two, three, four] = [1_u32, 2, 3, 4].map(u32::to_ne_bytes);
        check_request(
            RequestDatum::PacketInformation { packet_size: 1, inputs: 2, outputs: 3, pools: 4 },
            laid_out(0, &[(4, &one), (8, &two), (12, &three), (16, &four)]),
        );
        let operand = OperandInformation {
            has_no_value: true,
            location: DataLocation { pool_index: 1, offset: 2, length: 3 },
            dimensions: 4,
        };
        let expected = [(4, &[1][..]), (8, &one), (12, &two), (16, &three), (20, &four)];
        check_request(RequestDatum::Input(operand), laid_out(1, &expected));
        check_request(RequestDatum::InputDimension(2), laid_out(2, &[(4, &two)]));
        check_request(RequestDatum::Output(operand), laid_out(3, &expected));
        check_request(RequestDatum::OutputDimension(2), laid_out(4, &[(4, &two)]));
        check_request(RequestDatum::Pool(-1), laid_out(5, &[(4, &[0xFF; 4])]));
        check_request(RequestDatum::MeasureTiming(1), laid_out(6, &[(4, &one)]));
    }

    #[test]
    fn ipc_4_a_result_datum_is_laid_out_as_the_interface_says() {
        let [one, two, three] = [1_u32, 2, 3].map(u32::to_ne_bytes);
        check_result(
            ResultDatum::PacketInformation { packet_size: 1, status: 2, outputs: 3 },
            laid_out(0, &[(8, &one), (12, &two), (16, &three)]),
        );
        check_result(
            ResultDatum::Output { is_sufficient: true, dimensions: 3 },
            laid_out(1, &[(8, &[1]), (12, &three)]),
        );
        check_result(ResultDatum::OutputDimension(2), laid_out(2, &[(8, &two)]));
        check_result(
            ResultDatum::Timing { time_on_device: 5, time_in_driver: u64::MAX },
            laid_out(3, &[(8, &5_u64.to_ne_bytes()), (16, &[0xFF; 8])]),
        );
    }

    #[test]
    fn burst_13_padding_is_zero() {
        let datum = ResultDatum::Output { is_sufficient: true, dimensions: u32::MAX };
        let bytes = FmqResultDatum::from(datum).to_bytes();
        assert_eq!(bytes[1..8], [0; 7]);
        assert_eq!(bytes[9..12], [0; 3]);
        assert_eq!(bytes[16..], [0; 8]);
        let omitted = OperandInformation { has_no_value: true, ..OperandInformation::default() };
        let bytes = FmqRequestDatum::from(RequestDatum::Input(omitted)).to_bytes();
        assert_eq!((bytes[1..4].to_vec(), bytes[5..8].to_vec()), (vec![0; 3], vec![0; 3]));
    }

    #[test]
    fn burst_5_tags_that_stand_for_nothing_are_refused() {
        for tag in 7..=u8::MAX {
            let datum = FmqRequestDatum::from_bytes(laid_out(tag, &[]));
            assert_eq!(datum.decode(), Err(DatumError::Tag { found: tag, highest: 6 }));
        }
        for tag in 4..=u8::MAX {
            let datum = FmqResultDatum::from_bytes(laid_out(tag, &[]));
            assert_eq!(datum.decode(), Err(DatumError::Tag { found: tag, highest: 3 }));
        }
    }

    #[test]
    fn truth_values_other_than_0_and_1_are_refused() {
        let datum = FmqRequestDatum::from_bytes(laid_out(1, &[(4, &[2])]));
        assert_eq!(datum.decode(), Err(DatumError::Bool { field: "hasNoValue", found: 2 }));
        let datum = FmqResultDatum::from_bytes(laid_out(1, &[(8, &[0xFF])]));
        assert_eq!(datum.decode(), Err(DatumError::Bool { field: "isSufficient", found: 0xFF }));
    }
}

//! The structures of the interface files: bytes, and the offset of each field, in the order of declaration.

use super::{Embedded, Source};
use nnhal_hidl::{v1_0, v1_1, v1_2, v1_3};
use nnhal_hwbinder::parcel::Place;
use nnhal_hwbinder::{ParcelError, Reader, Writer};

/// Describes a structure. The types of its fields are those of the structure.
macro_rules! structure {
    ($name:ty, $size:literal, { $($field:ident: $offset:literal),* $(,)? }) => {
        impl $crate::wire::Embedded for $name {
            const SIZE: usize = $size;

            fn put(&self, bytes: &mut [u8]) {
                $($crate::wire::Embedded::put(&self.$field, &mut bytes[$offset..]);)*
            }

            fn put_children(
                &self,
                writer: &mut nnhal_hwbinder::Writer,
                place: nnhal_hwbinder::parcel::Place,
            ) {
                $($crate::wire::Embedded::put_children(&self.$field, writer, place.at($offset));)*
            }

            fn get(
                reader: &mut nnhal_hwbinder::Reader<'_>,
                source: $crate::wire::Source<'_>,
            ) -> Result<Self, nnhal_hwbinder::ParcelError> {
                Ok(Self { $($field: $crate::wire::Embedded::get(reader, source.at($offset))?),* })
            }
        }
    };
}

pub(super) use structure;

structure!(v1_0::PerformanceInfo, 8, { exec_time: 0, power_usage: 4 });
structure!(v1_0::DataLocation, 12, { pool_index: 0, offset: 4, length: 8 });
structure!(v1_0::Capabilities, 16, { float32_performance: 0, quantized8_performance: 8 });
structure!(v1_0::Operand, 56, {
    operand_type: 0,
    dimensions: 8,
    number_of_consumers: 24,
    scale: 28,
    zero_point: 32,
    lifetime: 36,
    location: 40,
});
structure!(v1_0::Operation, 40, { operation_type: 0, inputs: 8, outputs: 24 });
structure!(v1_0::Model, 96, {
    operands: 0,
    operations: 16,
    input_indexes: 32,
    output_indexes: 48,
    operand_values: 64,
    pools: 80,
});
structure!(v1_0::RequestArgument, 32, { has_no_value: 0, location: 4, dimensions: 16 });
structure!(v1_0::Request, 48, { inputs: 0, outputs: 16, pools: 32 });

structure!(v1_1::Capabilities, 24, {
    float32_performance: 0,
    quantized8_performance: 8,
    relaxed_float32to_float16_performance: 16,
});
structure!(v1_1::Model, 104, {
    operands: 0,
    operations: 16,
    input_indexes: 32,
    output_indexes: 48,
    operand_values: 64,
    pools: 80,
    relax_computation_float32to_float16: 96,
});

structure!(v1_2::OperandPerformance, 12, { operand_type: 0, info: 4 });
structure!(v1_2::Capabilities, 32, {
    relaxed_float32to_float16_performance_scalar: 0,
    relaxed_float32to_float16_performance_tensor: 8,
    operand_performance: 16,
});
structure!(v1_2::SymmPerChannelQuantParams, 24, { scales: 0, channel_dim: 16 });
structure!(v1_2::Operand, 88, {
    operand_type: 0,
    dimensions: 8,
    number_of_consumers: 24,
    scale: 28,
    zero_point: 32,
    lifetime: 36,
    location: 40,
    extra_params: 56,
});
structure!(v1_2::ExtensionNameAndPrefix, 24, { name: 0, prefix: 16 });
structure!(v1_2::Model, 120, {
    operands: 0,
    operations: 16,
    input_indexes: 32,
    output_indexes: 48,
    operand_values: 64,
    pools: 80,
    relax_computation_float32to_float16: 96,
    extension_name_to_prefix: 104,
});
structure!(v1_2::OutputShape, 24, { dimensions: 0, is_sufficient: 16 });
structure!(v1_2::Timing, 16, { time_on_device: 0, time_in_driver: 8 });
structure!(v1_2::OperandTypeInformation, 8, { operand_type: 0, is_tensor: 2, byte_size: 4 });
structure!(v1_2::Extension, 32, { name: 0, operand_types: 16 });

structure!(v1_3::Capabilities, 48, {
    relaxed_float32to_float16_performance_scalar: 0,
    relaxed_float32to_float16_performance_tensor: 8,
    operand_performance: 16,
    if_performance: 32,
    while_performance: 40,
});
structure!(v1_3::Subgraph, 64, {
    operands: 0,
    operations: 16,
    input_indexes: 32,
    output_indexes: 48,
});
structure!(v1_3::Model, 136, {
    main: 0,
    referenced: 64,
    operand_values: 80,
    pools: 96,
    relax_computation_float32to_float16: 112,
    extension_name_to_prefix: 120,
});
structure!(v1_3::BufferDesc, 16, { dimensions: 0 });
structure!(v1_3::BufferRole, 12, { model_index: 0, io_index: 4, frequency: 8 });
structure!(v1_3::Request, 48, { inputs: 0, outputs: 16, pools: 32 });

/// A cache token: an array of fixed length is its bytes.
impl Embedded for v1_2::CacheToken {
    const SIZE: usize = size_of::<Self>();

    fn put(&self, bytes: &mut [u8]) {
        bytes[..Self::SIZE].copy_from_slice(self);
    }

    fn put_children(&self, _: &mut Writer, _: Place) {}

    fn get(_: &mut Reader<'_>, source: Source<'_>) -> Result<Self, ParcelError> {
        Ok(source.first())
    }
}

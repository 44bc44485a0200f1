//! The types of the C API, as they cross the border.

use crate::pointer::Plain;

/// What an operand is (`ANeuralNetworksOperandType`).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ANeuralNetworksOperandType {
    /// Code of the type.
    pub r#type: i32,
    /// Number of dimensions.
    pub dimension_count: u32,
    /// Their lengths, 0 where unknown; null if there are none.
    pub dimensions: *const u32,
    /// For quantized types, else 0.
    pub scale: f32,
    /// For quantized types, else 0.
    pub zero_point: i32,
}

/// Scales along a dimension (`ANeuralNetworksSymmPerChannelQuantParams`).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ANeuralNetworksSymmPerChannelQuantParams {
    /// The dimension.
    pub channel_dim: u32,
    /// Number of scales.
    pub scale_count: u32,
    /// One positive number for each channel.
    pub scales: *const f32,
}

// SAFETY: numbers and a pointer, of any bits.
#[allow(unsafe_code, reason = "a promise about the type")]
unsafe impl Plain for ANeuralNetworksOperandType {}
// SAFETY: numbers and a pointer, of any bits.
#[allow(unsafe_code, reason = "a promise about the type")]
unsafe impl Plain for ANeuralNetworksSymmPerChannelQuantParams {}

/// Declares types that C only knows by pointers, which lead nowhere (see [`crate::handle`]).
macro_rules! opaque {
    ($($(#[$meta:meta])* $Name:ident: $Object:ty, $kind:literal;)*) => {
        $(
            $(#[$meta])*
            #[derive(Debug)]
            #[repr(C)]
            pub struct $Name {
                nothing: [u8; 0],
            }

            impl crate::handle::Handle for $Name {
                type Object = $Object;
                const NAME: &'static str = stringify!($Name);

                fn table() -> &'static crate::handle::Table<$Object> {
                    static TABLE: crate::handle::Table<$Object> = crate::handle::Table::new($kind);
                    &TABLE
                }
            }
        )*
    };
}

pub(crate) use opaque;

opaque! {
    /// A device; never freed.
    ANeuralNetworksDevice: crate::device::ListedDevice, 1;
    /// A model, being built or finished.
    ANeuralNetworksModel: std::sync::Mutex<nnhal_runtime::ModelBuilder>, 2;
    /// A compilation, being set up or finished.
    ANeuralNetworksCompilation: crate::compilation::Held, 3;
    /// An execution.
    ANeuralNetworksExecution: crate::execution::Held, 4;
    /// A burst.
    ANeuralNetworksBurst: nnhal_runtime::Burst, 5;
    /// An event.
    ANeuralNetworksEvent: crate::event::Held, 6;
    /// A memory.
    ANeuralNetworksMemory: nnhal_runtime::Memory, 7;
    /// A description of memory, being set up or finished.
    ANeuralNetworksMemoryDesc: std::sync::Mutex<nnhal_runtime::MemoryDescription>, 8;
}

/// Memory of Android's graphics system, which there is none of here.
#[derive(Debug)]
#[repr(C)]
pub struct AHardwareBuffer {
    nothing: [u8; 0],
}

//! Values of the interfaces, bent on their way: they are refused or others are read, and nothing panics.

use nnhal_hidl::handle::Handle;
use nnhal_hidl::v1_2::{ExtensionNameAndPrefix, ExtraParams, Operand, SymmPerChannelQuantParams};
use nnhal_hidl::v1_3::{MemoryPool, Model, Request, Subgraph};
use nnhal_hidl::{HidlMemory, v1_0};
use nnhal_hidl_binder::wire::Argument;
use nnhal_hwbinder::Writer;
use nnhal_hwbinder::simulate::{Delivered, Nothing};
use proptest::prelude::*;
use std::fs::File;

fn memory(name: &str) -> HidlMemory {
    let file = File::open("/dev/null").unwrap();
    let handle = Handle::new(vec![file.into()], vec![3, 0, 0]);
    HidlMemory { name: name.to_owned(), handle, size: 4096 }
}

fn operand(extra_params: ExtraParams) -> Operand {
    Operand { operand_type: 11, dimensions: vec![2, 3], extra_params, ..Operand::default() }
}

fn model() -> Model {
    let scales = SymmPerChannelQuantParams { scales: vec![0.5, 0.25], channel_dim: 1 };
    let operation = v1_0::Operation { operation_type: 0, inputs: vec![0, 1], outputs: vec![2] };
    let graph = Subgraph {
        operands: vec![
            operand(ExtraParams::None),
            operand(ExtraParams::ChannelQuant(scales)),
            operand(ExtraParams::Extension(vec![1, 2, 3].into())),
            operand(ExtraParams::Unknown { tag: 77 }),
        ],
        operations: vec![operation],
        input_indexes: vec![0],
        output_indexes: vec![2, 3],
    };
    Model {
        main: graph.clone(),
        referenced: vec![graph.clone(), Subgraph::default(), graph],
        operand_values: vec![7; 33].into(),
        pools: vec![memory("mmap_fd"), HidlMemory::default()],
        relax_computation_float32to_float16: true,
        extension_name_to_prefix: vec![
            ExtensionNameAndPrefix { name: "com.example".to_owned(), prefix: 5 },
            ExtensionNameAndPrefix { name: String::new(), prefix: 6 },
        ],
    }
}

fn request() -> Request {
    let argument = v1_0::RequestArgument {
        has_no_value: false,
        location: v1_0::DataLocation { pool_index: 1, offset: 2, length: 3 },
        dimensions: vec![1],
    };
    let pools = vec![
        MemoryPool::HidlMemory(memory("ashmem")),
        MemoryPool::Token(9),
        MemoryPool::Unknown { tag: 9 },
    ];
    Request { inputs: vec![argument.clone()], outputs: vec![argument.clone(), argument], pools }
}

fn delivered(value: &impl Argument) -> Delivered {
    let mut writer = Writer::default();
    value.write(&mut writer);
    Delivered::of(writer)
}

/// What a value looks like, without the numbers of its descriptors.
fn text(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    let pieces =
        text.split("fd: ").map(|piece| piece.trim_start_matches(|c: char| c.is_ascii_digit()));
    pieces.collect::<Vec<_>>().join("fd: ")
}

#[test]
fn models_and_requests_arrive_as_they_were() {
    let arrived = delivered(&model()).read(&Nothing, Model::read).unwrap();
    assert_eq!(text(&arrived), text(&model()));
    let arrived = delivered(&request()).read(&Nothing, Request::read).unwrap();
    assert_eq!(text(&arrived), text(&request()));
}

#[test]
fn a_count_beyond_the_buffer_is_refused() {
    let mut delivered = delivered(&model());
    let at = delivered.mapping.len();
    // The count of operands is in the model's own buffer, the first behind data and offsets.
    let first = delivered.data.next_multiple_of(8) + delivered.offsets;
    assert!(first < at);
    for count in [0u32, 3, 5, u32::MAX] {
        delivered.mapping[first + 8..first + 12].copy_from_slice(&count.to_le_bytes());
        assert!(delivered.read(&Nothing, Model::read).is_err(), "{count}");
    }
}

proptest! {
    #[test]
    fn bent_models_do_no_harm(
        changes in prop::collection::vec((0usize..100_000, any::<u8>()), 1..8),
        cut in 0usize..5000,
    ) {
        let mut delivered = delivered(&model());
        let length = delivered.mapping.len();
        for (at, value) in changes {
            delivered.mapping[at % length] = value;
        }
        if cut < 1000 {
            delivered.mapping.truncate(length - cut);
        }
        if let Ok(model) = delivered.read(&Nothing, Model::read) {
            let mut writer = Writer::default();
            model.write(&mut writer);
            prop_assert!(Delivered::of(writer).read(&Nothing, Model::read).is_ok());
        }
    }

    #[test]
    fn bent_requests_do_no_harm(changes in prop::collection::vec((0usize..100_000, any::<u8>()), 1..8)) {
        let mut delivered = delivered(&request());
        let length = delivered.mapping.len();
        for (at, value) in changes {
            delivered.mapping[at % length] = value;
        }
        let _ = delivered.read(&Nothing, Request::read);
    }
}

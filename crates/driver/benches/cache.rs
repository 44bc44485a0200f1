//! How long saving and loading take, by the bytes of a model's constants: as a model, which is
//! validated again, and as a program of an engine, which is not.
//!
//! `cargo bench -p nnhal-driver --bench cache`
#![allow(missing_docs)] // of the function that divan makes

use divan::Bencher;
use divan::counter::BytesCount;
use nnhal_driver::CompileOptions;
use nnhal_driver::cache::{CacheFiles, CacheKey, Identity, ModelCache};
use nnhal_hal::{
    ExecutionPreference, HalVersion, OperandSpec, OperationType, Priority, SubgraphBuilder,
};
use nnhal_ops::ValidModel;
use std::os::fd::OwnedFd;

const TOKEN: [u8; 32] = [1; 32];
const OPTIONS: CompileOptions = CompileOptions {
    preference: ExecutionPreference::FastSingleAnswer,
    priority: Priority::Medium,
    hints: nnhal_hal::Hints::NONE,
};
/// Bytes of constants.
const SIZES: [u32; 4] = [1 << 10, 1 << 18, 1 << 22, 1 << 26];

fn main() {
    divan::main();
}

/// 64 ADDs, whose constants take `size` bytes together.
fn model(size: u32) -> ValidModel {
    let length = size / 64 / 4;
    let mut graph = SubgraphBuilder::new();
    let none = graph.scalar_i32(0);
    let mut value = graph.input("x", OperandSpec::tensor_float32([length]));
    for index in 0..64_u8 {
        let values = vec![f32::from(index); length as usize];
        let constant = graph.constant(OperandSpec::tensor_float32([length]), &values);
        let sum = OperandSpec::tensor_float32([length]);
        value = graph.operation(OperationType::Add, [value, constant, none], sum);
    }
    graph.output(value);
    nnhal_ops::validate(&graph.into_model().expect("a whole model"), HalVersion::V1_3)
        .expect("valid")
}

fn cache() -> ModelCache {
    ModelCache::new(&CacheKey::new([1; 32]), Identity::here("bench", "1"))
}

fn files(model: &[OwnedFd]) -> CacheFiles<'_> {
    CacheFiles { model, data: &[], token: &TOKEN }
}

#[divan::bench(args = SIZES)]
fn save(bencher: Bencher<'_, '_>, size: u32) {
    let (cache, model) = (cache(), model(size));
    let model_files = [tempfile::tempfile().expect("a file").into()];
    bencher.counter(BytesCount::new(size)).bench_local(|| {
        cache.save(files(&model_files), &model, &OPTIONS, None).expect("saved");
    });
}

#[divan::bench(args = SIZES)]
fn load(bencher: Bencher<'_, '_>, size: u32) {
    let (cache, model) = (cache(), model(size));
    let model_files = [tempfile::tempfile().expect("a file").into()];
    cache.save(files(&model_files), &model, &OPTIONS, None).expect("saved");
    bencher
        .counter(BytesCount::new(size))
        .bench_local(|| cache.load(files(&model_files), &[]).expect("loaded"));
}

/// The floor under [`load`] of a model: what an engine's own form costs before it is restored.
#[divan::bench(args = SIZES)]
fn load_program(bencher: Bencher<'_, '_>, size: u32) {
    let (cache, model) = (cache(), model(1 << 10));
    let model_files = [tempfile::tempfile().expect("a file").into()];
    let program = vec![1; size as usize];
    cache.save(files(&model_files), &model, &OPTIONS, Some(&program)).expect("saved");
    bencher
        .counter(BytesCount::new(size))
        .bench_local(|| cache.load(files(&model_files), &[]).expect("loaded"));
}

//! Graphs of many layers, as passes and the layout of memory meet them.
//!
//! [`builder`] makes a graph layer by layer, [`layers`] are single operations with their weights,
//! [`decoders`] are those that enlarge images, [`patterns`] are the groups of operations that converters write for one layer.

mod builder;
mod decoders;
mod layers;
mod patterns;
mod windows;

use crate::calls::config;
use crate::calls::model::execute;
use crate::calls::random::Random;
use crate::compare::compare;
use crate::devices::{self, Candidate};
use builder::{Finished, GraphBuilder, Kind, Said};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// Most layers of a graph.
const MOST_LAYERS: u32 = 10;

/// The graph of a seed, or what its first layers are.
fn draw(kind: Kind, seed: u64, most_layers: u32) -> Result<Finished, String> {
    let mut random = Random::new(seed);
    let said = random.pick(&[Said::Everything, Said::Everything, Said::Inputs, Said::Ranks]);
    let layers = random.length(2, MOST_LAYERS).min(most_layers);
    let mut builder = GraphBuilder::new(&mut random, kind, said);
    layers::image_input(&mut builder);
    for _ in 0..layers {
        layers::draw(&mut builder);
    }
    // Some layers do not suit the values that there are, and add nothing.
    while !builder.computes() {
        layers::draw(&mut builder);
    }
    builder.finish()
}

fn check(graph: &Finished, candidates: &[Candidate]) -> Result<(), String> {
    let Finished { model, request, specs, tolerances, story } = graph;
    let with_story = |error: String| format!("{error}\n{story}");
    let expected = execute(devices::reference(), model, request).map_err(with_story)?;
    for candidate in candidates {
        let about = |error: String| with_story(format!("{}: {error}", candidate.name));
        let found = candidate.execute(model, request).map_err(about)?;
        compare(specs, &expected, &found, tolerances).map_err(about)?;
    }
    Ok(())
}

/// What goes wrong with the graph of a seed, described by as few layers as show it.
fn check_seed(kind: Kind, seed: u64, candidates: &[Candidate]) -> Result<(), String> {
    let whole = draw(kind, seed, MOST_LAYERS).and_then(|graph| check(&graph, candidates));
    let Err(error) = whole else { return Ok(()) };
    let shorter = (1..MOST_LAYERS)
        .find_map(|layers| draw(kind, seed, layers).and_then(|it| check(&it, candidates)).err());
    Err(format!("seed {seed}: {}", shorter.unwrap_or(error)))
}

fn check_all(kind: Kind, cases: u32, candidates: &[Candidate]) {
    let seed = std::env::var("NNHAL_TEST_SEED").ok().and_then(|it| it.parse().ok());
    if let Some(seed) = seed {
        if let Err(error) = check_seed(kind, seed, candidates) {
            panic!("{error}");
        }
        return;
    }
    let outcome = TestRunner::new(config(cases))
        .run(&any::<u64>(), |seed| check_seed(kind, seed, candidates).map_err(TestCaseError::fail));
    if let Err(failure) = outcome {
        panic!("{kind:?}: {failure}");
    }
}

#[test]
fn graphs_of_float32_are_as_by_reference() {
    check_all(Kind::Float32, 60, devices::candidates());
}

#[test]
fn graphs_of_float16_are_as_by_reference() {
    check_all(Kind::Float16, 60, devices::candidates());
}

#[test]
fn graphs_of_unsigned_bytes_are_as_by_reference() {
    check_all(Kind::Unsigned, 60, devices::candidates());
}

#[test]
fn graphs_of_signed_bytes_are_as_by_reference() {
    check_all(Kind::Signed, 60, devices::candidates());
}

/// What a pass leaves undone, others and kernels must take as it is.
#[test]
fn graphs_with_passes_switched_off_are_as_by_reference() {
    for kind in [Kind::Float32, Kind::Float16, Kind::Unsigned, Kind::Signed] {
        check_all(kind, 16, devices::with_passes_off());
    }
}

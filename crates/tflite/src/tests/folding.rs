//! Shapes that follow from shapes, and what a hostile file can make of it.

use super::draft::Draft;
use crate::schema::{
    BuiltinOperator as B, BuiltinOptions, PackOptions, ReducerOptions, StridedSliceOptions,
    TensorType as T,
};
use crate::{Import, ImportError, ImportOptions, import_bytes, import_memory};
use nnhal_hal::{HalVersion, Memory, OperationType as O};
use nnhal_ops::extension::ExtensionOperation;
use std::time::{Duration, Instant};

/// A slice of one element of a vector.
fn element(draft: &mut Draft, vector: i32, at: i32) -> i32 {
    let (begin, end) = (draft.integers(&[1], &[at]), draft.integers(&[1], &[at + 1]));
    let stride = draft.integers(&[1], &[1]);
    let one = draft.tensor(T::Int32, &[]);
    let options = StridedSliceOptions { shrink_axis_mask: 1, ..StridedSliceOptions::default() };
    let options = BuiltinOptions::StridedSliceOptions(Box::new(options));
    draft.operator(B::StridedSlice, &[vector, begin, end, stride], &[one], Some(options));
    one
}

fn shape_of(draft: &mut Draft, tensor: i32, rank: i32) -> i32 {
    let shape = draft.tensor(T::Int32, &[rank]);
    let options = BuiltinOptions::ShapeOptions(Box::default());
    draft.operator(B::Shape, &[tensor], &[shape], Some(options));
    shape
}

/// `[batch, length, 4]`, both open, becomes `[batch, length * 4]`, as Keras' Flatten does it.
fn flatten() -> Draft {
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[1, 1, 4]);
    draft.tensor_mut(x).shape_signature = Some(vec![-1, -1, 4]);
    let shape = shape_of(&mut draft, x, 3);
    let (batch, length) = (element(&mut draft, shape, 0), element(&mut draft, shape, 1));
    let (four, width) = (draft.integers(&[], &[4]), draft.tensor(T::Int32, &[]));
    draft.operator(B::Mul, &[length, four], &[width], None);
    let target = draft.tensor(T::Int32, &[2]);
    let options = BuiltinOptions::PackOptions(Box::new(PackOptions { values_count: 2, axis: 0 }));
    draft.operator(B::Pack, &[batch, width], &[target], Some(options));
    // The file's own length is that of no input at all.
    let y = draft.tensor(T::Float32, &[1, 1]);
    draft.tensor_mut(y).shape_signature = Some(vec![-1, -1]);
    draft.operator(B::Reshape, &[x, target], &[y], None);
    draft.ends(0, &[x], &[y]);
    draft
}

/// As a framed spectrum has it: a length is taken out of a shape by SPLIT_V, of which one part has no
/// elements, and becomes a scalar by a shape without elements.
#[test]
fn shapes_without_elements_make_scalars() {
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[1, 12]);
    draft.tensor_mut(x).shape_signature = Some(vec![-1, 12]);
    let shape = shape_of(&mut draft, x, 2);
    let (sizes, axis) = (draft.integers(&[3], &[1, 1, 0]), draft.integers(&[], &[0]));
    let parts = [1, 1, 0].map(|length| draft.tensor(T::Int32, &[length]));
    draft.operator(B::SplitV, &[shape, sizes, axis], &parts, None);
    // No bytes in the file.
    let nothing = draft.tensor(T::Int32, &[0]);
    let scalar = draft.tensor(T::Int32, &[]);
    draft.operator(B::Reshape, &[parts[1], nothing], &[scalar], None);
    let (two, half) = (draft.integers(&[], &[2]), draft.tensor(T::Int32, &[]));
    draft.operator(B::FloorDiv, &[scalar, two], &[half], None);
    let target = draft.tensor(T::Int32, &[2]);
    let options = BuiltinOptions::PackOptions(Box::new(PackOptions { values_count: 2, axis: 0 }));
    draft.operator(B::Pack, &[half, two], &[target], Some(options));
    let y = draft.tensor(T::Float32, &[6, 2]);
    draft.operator(B::Reshape, &[x, target], &[y], None);
    draft.ends(0, &[x], &[y]);
    let import = with_shape(&draft, &[1, 12]);
    let output = import.model.main.outputs[0] as usize;
    assert_eq!(import.model.main.operands[output].dimensions, [6, 2]);
    assert_eq!(import.model.main.operations.len(), 1, "all but the last is folded");
}

fn with_shape(draft: &Draft, shape: &[u32]) -> Import {
    let shapes = [Some(shape.to_vec())];
    let options = ImportOptions { shapes: &shapes, ..ImportOptions::default() };
    let import = import_memory(Memory::from_bytes(&draft.bytes()).unwrap(), &options).unwrap();
    nnhal_ops::validate(&import.model, HalVersion::LATEST).unwrap();
    import
}

fn refusal(draft: &Draft) -> String {
    let begun = Instant::now();
    let refused = import_bytes(&draft.bytes()).unwrap_err();
    assert!(matches!(refused, ImportError::Unsupported { .. }), "{refused:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    refused.to_string()
}

#[test]
fn shapes_follow_from_those_of_the_inputs() {
    let draft = flatten();
    let example = import_bytes(&draft.bytes()).unwrap();
    assert!(example.has_example_shapes);
    assert_eq!(example.outputs[0].shape, [Some(1), Some(4)]);
    let import = with_shape(&draft, &[3, 5, 4]);
    assert_eq!(import.outputs[0].shape, [Some(3), Some(20)]);
    let operations: Vec<O> =
        import.model.main.operations.iter().map(|it| it.operation_type).collect();
    assert_eq!(operations, [O::Reshape]);
    let output = import.model.main.outputs[0] as usize;
    assert_eq!(import.model.main.operands[output].dimensions, [3, 20]);
}

#[test]
fn integers_of_any_rank_are_folded() {
    // A mask of the places that come before each other: [[0], [1], [2]] >= [[0, 1, 2]].
    let mut draft = Draft::new();
    let (zero, three, one) =
        (draft.integers(&[], &[0]), draft.integers(&[], &[3]), draft.integers(&[], &[1]));
    let range = draft.tensor(T::Int32, &[3]);
    draft.operator(B::Range, &[zero, three, one], &[range], None);
    let reshaped = |draft: &mut Draft, shape: [i32; 2]| {
        let target = draft.integers(&[2], &shape);
        let output = draft.tensor(T::Int32, &shape);
        let options = BuiltinOptions::ReshapeOptions(Box::default());
        draft.operator(B::Reshape, &[range, target], &[output], Some(options));
        output
    };
    let (column, row) = (reshaped(&mut draft, [3, 1]), reshaped(&mut draft, [1, 3]));
    let mask = draft.tensor(T::Bool, &[3, 3]);
    draft.operator(B::GreaterEqual, &[column, row], &[mask], None);
    let x = draft.tensor(T::Float32, &[3, 3]);
    let (low, y) = (draft.floats(&[3, 3], &[-1.0; 9]), draft.tensor(T::Float32, &[3, 3]));
    draft.operator(B::SelectV2, &[mask, x, low], &[y], None);
    draft.ends(0, &[x], &[y]);
    let import = import_bytes(&draft.bytes()).unwrap();
    let main = &import.model.main;
    assert_eq!(main.operations.len(), 1);
    let mask = &main.operands[main.operations[0].inputs[0] as usize];
    let start = mask.location.offset as usize;
    assert_eq!(import.model.operand_values[start..start + 9], [1, 0, 0, 1, 1, 0, 1, 1, 1]);
}

#[test]
fn products_along_axes_are_folded() {
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[2, 3, 4]);
    let shape = shape_of(&mut draft, x, 3);
    let (axes, count) = (draft.integers(&[1], &[0]), draft.tensor(T::Int32, &[1]));
    let options = BuiltinOptions::ReducerOptions(Box::new(ReducerOptions { keep_dims: true }));
    draft.operator(B::ReduceProd, &[shape, axes], &[count], Some(options));
    let y = draft.tensor(T::Float32, &[24]);
    draft.operator(B::Reshape, &[x, count], &[y], None);
    draft.ends(0, &[x], &[y]);
    assert_eq!(import_bytes(&draft.bytes()).unwrap().outputs[0].shape, [Some(24)]);
}

/// A file of one operator on constants, whose result is added to itself.
fn computed(builtin: B, constants: &[(&[i32], &[i32])]) -> Draft {
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[1]);
    let inputs: Vec<i32> =
        constants.iter().map(|(shape, values)| draft.integers(shape, values)).collect();
    let (result, sum) = (draft.tensor(T::Int32, &[1]), draft.tensor(T::Int32, &[1]));
    draft.operator(builtin, &inputs, &[result], None);
    draft.operator(B::Add, &[result, result], &[sum], None);
    draft.ends(0, &[x], &[sum]);
    draft
}

#[test]
fn sec_huge_results_are_not_computed() {
    const MOST: i32 = i32::MAX;
    /// Shape and elements.
    type Constant<'a> = (&'a [i32], &'a [i32]);
    let cases: [(B, &[Constant<'_>]); 6] = [
        (B::Fill, &[(&[2], &[MOST, MOST]), (&[], &[7])]),
        (B::Fill, &[(&[4], &[1 << 15, 1 << 15, 1 << 15, 1 << 15]), (&[], &[7])]),
        (B::Range, &[(&[], &[i32::MIN]), (&[], &[MOST]), (&[], &[1])]),
        (B::Tile, &[(&[2, 2], &[1, 2, 3, 4]), (&[2], &[MOST, MOST])]),
        (B::BroadcastTo, &[(&[1], &[5]), (&[3], &[MOST, MOST, 2])]),
        (B::Tile, &[(&[1], &[1]), (&[1], &[MOST])]),
    ];
    for (builtin, constants) in cases {
        let begun = Instant::now();
        // Whether it is refused, or left to a device, nothing of that size is made here.
        let outcome = import_bytes(&computed(builtin, constants).bytes());
        assert!(begun.elapsed() < Duration::from_secs(2), "{builtin:?}: {:?}", begun.elapsed());
        if let Ok(import) = outcome {
            assert!(import.model.operand_values.len() < 1 << 20, "{builtin:?}");
            let _ = nnhal_ops::validate(&import.model, HalVersion::LATEST);
        }
    }
}

#[test]
fn sec_lengths_that_make_no_sense_are_named() {
    let text = refusal(&computed(B::Fill, &[(&[2], &[-5, 3]), (&[], &[7])]));
    assert!(text.contains("a length is -5"), "{text}");
    let text = refusal(&computed(B::Tile, &[(&[1], &[1]), (&[1], &[-1])]));
    assert!(text.contains("a length is -1"), "{text}");
    let text = refusal(&computed(B::Slice, &[(&[3], &[1, 2, 3]), (&[1], &[2]), (&[1], &[5])]));
    assert!(text.contains("begin 2 and size 5 of length 3"), "{text}");
    let text = refusal(&computed(B::Range, &[(&[], &[0]), (&[], &[9]), (&[], &[0])]));
    assert!(text.contains("from 0, 9 is not reached by 0"), "{text}");
    let text = refusal(&computed(B::Gather, &[(&[3], &[1, 2, 3]), (&[1], &[-7])]));
    assert!(text.contains("an index is out of range"), "{text}");
    let text = refusal(&computed(B::Reshape, &[(&[3], &[1, 2, 3]), (&[2], &[2, -1])]));
    assert!(text.contains("[3] has 3 elements, which the lengths [2, -1] do not divide"), "{text}");
    let text = refusal(&computed(B::Transpose, &[(&[3], &[1, 2, 3]), (&[1], &[i32::MIN])]));
    assert!(text.contains("there is no axis"), "{text}");
}

#[test]
fn sec_what_does_not_fit_its_type_is_not_folded() {
    for (a, b) in [(i32::MIN, -1), (1, 0)] {
        let draft = computed(B::Div, &[(&[1], &[a]), (&[1], &[b])]);
        let import = import_bytes(&draft.bytes()).unwrap();
        let first = import.model.main.operations[0].operation_type;
        assert_eq!(first, ExtensionOperation::Div.operation_type());
    }
    let fits = computed(B::Div, &[(&[1], &[-7]), (&[1], &[2])]);
    let import = import_bytes(&fits.bytes()).unwrap();
    // -3 - 3, which is constant too, and copied for the caller.
    let main = &import.model.main;
    let sum = &main.operands[main.operations[0].inputs[0] as usize];
    let start = sum.location.offset as usize;
    assert_eq!(import.model.operand_values[start..start + 4], (-6_i32).to_le_bytes());
}

#[test]
fn sec_folding_over_and_over_ends() {
    // Each operator is within the limits, and there are many.
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[1]);
    let (value, times) = (draft.integers(&[1], &[7]), draft.integers(&[1], &[1 << 16]));
    let mut last = value;
    for _ in 0..3000 {
        let tiled = draft.tensor(T::Int32, &[1 << 16]);
        draft.operator(B::Tile, &[value, times], &[tiled], None);
        last = tiled;
    }
    draft.ends(0, &[x], &[last]);
    let begun = Instant::now();
    let outcome = import_bytes(&draft.bytes());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(outcome.is_err(), "it would take 3000 times 256 KiB");
}

#[test]
fn what_follows_a_refused_operator_is_no_cause() {
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[1, 4]);
    draft.tensor_mut(x).shape_signature = Some(vec![-1, 4]);
    let (places, y) = (draft.tensor(T::Int64, &[1, 2]), draft.tensor(T::Float32, &[1]));
    draft.tensor_mut(places).shape_signature = Some(vec![-1, 2]);
    draft.tensor_mut(y).shape_signature = Some(vec![-1]);
    draft.operator(B::HashtableFind, &[x], &[places], None);
    // Its axis would have to be constant.
    draft.operator(B::Cumsum, &[x, places], &[y], None);
    draft.ends(0, &[x], &[y]);
    let refused = import_bytes(&draft.bytes()).unwrap_err();
    let (causes, consequences) = refused.causes();
    assert_eq!(causes.len(), 1, "{refused}");
    assert_eq!((causes[0].first.operator.as_str(), causes[0].count), ("HASHTABLE_FIND", 1));
    assert!(consequences > 0, "{refused}");
    assert!(refused.to_string().starts_with("1 operator has no counterpart:"), "{refused}");
}

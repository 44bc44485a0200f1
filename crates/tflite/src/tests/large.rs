//! Constants that are left out of the private copy of a file.

use super::draft::Draft;
use crate::excerpt::Excerpt;
use crate::schema::{BuiltinOperator as B, TensorType as T};
use crate::{Import, import_bytes};
use nnhal_hal::{Memory, OperandLifeTime};

const LENGTH: i32 = 20_000;

/// An input and a large constant, both gathered by a constant of this type.
fn draft(element: T, bytes: &[u8]) -> Draft {
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[3]);
    let indices = draft.constant(element, &[LENGTH], bytes);
    let floats: Vec<f32> = (0_u16..5000).map(f32::from).collect();
    let y = draft.tensor(T::Float32, &[LENGTH]);
    let table = draft.floats(&[5000], &floats);
    let z = draft.tensor(T::Float32, &[LENGTH]);
    draft.operator(B::Gather, &[x, indices], &[y], None);
    draft.operator(B::Gather, &[table, indices], &[z], None);
    draft.ends(0, &[x], &[y, z]);
    draft
}

fn indices() -> impl Iterator<Item = i32> {
    (0..LENGTH).map(|index| index % 3)
}

/// The bytes of the constant arguments of an operation.
fn constant(import: &Import, operation: usize, argument: usize) -> Vec<u8> {
    let main = &import.model.main;
    let operand = &main.operands[main.operations[operation].inputs[argument] as usize];
    let (from, length) = (operand.location.offset, operand.location.length);
    match operand.lifetime {
        OperandLifeTime::ConstantCopy => {
            import.model.operand_values[from as usize..][..length as usize].to_vec()
        }
        OperandLifeTime::ConstantReference => {
            let pool = &import.model.pools[operand.location.pool_index as usize];
            pool.view().unwrap().read_to_vec(from.into(), length.into()).unwrap()
        }
        other => panic!("{other:?} is no constant"),
    }
}

#[test]
fn large_constants_are_what_the_file_has() {
    let wanted: Vec<u8> = indices().flat_map(i32::to_le_bytes).collect();
    let wide: Vec<u8> = indices().flat_map(|index| i64::from(index).to_le_bytes()).collect();
    // Indexes of 64 bits are cast before the first GATHER.
    for (element, bytes, argument, last) in [(T::Int32, &wanted, 2, 1), (T::Int64, &wide, 0, 2)] {
        let import = import_bytes(&draft(element, bytes).bytes()).unwrap();
        assert!(constant(&import, 0, argument) == *bytes, "{element:?}");
        let table = constant(&import, last, 0);
        assert_eq!(table[4 * 4321..][..4], 4321_f32.to_le_bytes());
    }
}

#[test]
fn only_large_constants_are_left_out() {
    let bytes: Vec<u8> = indices().flat_map(i32::to_le_bytes).collect();
    let file = draft(T::Int32, &bytes).bytes();
    let excerpt = Excerpt::new(&Memory::from_bytes(&file).unwrap()).unwrap();
    let differ = |(copy, byte): (&u8, &u8)| copy != byte;
    let first = excerpt.bytes().iter().zip(&file).position(differ).unwrap();
    let last = excerpt.bytes().iter().zip(&file).rposition(differ).unwrap();
    assert!(!excerpt.has(&(first..first + 1)) && !excerpt.has(&(0..file.len())));
    assert!(excerpt.bytes()[first..=last].iter().filter(|byte| **byte == 0).count() > 60_000);
    assert!(excerpt.read(0..file.len()).unwrap() == file);
}

#[test]
fn files_that_break_off_are_errors() {
    let file = draft(T::Int32, &[1; 4 * LENGTH as usize]).bytes();
    for length in (1..file.len()).step_by(257).chain([file.len() - 1]) {
        assert!(import_bytes(&file[..length]).is_err(), "{length} of {}", file.len());
    }
}

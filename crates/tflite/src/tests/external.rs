//! Constants in files beside the model.

use super::draft::Draft;
use super::mapping::reasons;
use super::split::{bytes_of, floats_of, run};
use crate::schema::{BuiltinOperator as B, ExternalBuffer, ExternalBufferGroup, TensorType as T};
use crate::{Import, ImportError, describe_memory, import_file, open_file};
use std::path::PathBuf;
use tempfile::{TempDir, tempdir};

/// Writes files into a folder, and gives back the path of the first.
fn write(folder: &TempDir, files: &[(&str, &[u8])]) -> PathBuf {
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    folder.path().join(files[0].0)
}

const ID: u32 = 1 << 31;

/// `x + weights` of 40 floats, whose weights are 32 bytes into a file of this name.
fn sum(name: &str) -> Draft {
    let mut draft = Draft::new();
    let [x, weights, y] = [0; 3].map(|_| draft.tensor(T::Float32, &[40]));
    draft.tensor_mut(weights).external_buffer = ID;
    draft.operator(B::Add, &[x, weights], &[y], None);
    draft.ends(0, &[x], &[y]);
    let group = |name: &str| ExternalBufferGroup { name: Some(name.into()) };
    draft.model.external_buffer_groups = Some(vec![group(""), group(name)]);
    draft.model.external_buffers = Some(vec![ExternalBuffer {
        id: ID,
        group: 1,
        offset: 32,
        length: 160,
        packing: Some("unpacked".into()),
    }]);
    draft
}

fn buffer(draft: &mut Draft) -> &mut ExternalBuffer {
    &mut draft.model.external_buffers.as_mut().unwrap()[0]
}

fn weights() -> Vec<u8> {
    let numbers: Vec<f32> = (0..48_u8).map(|it| f32::from(it) * 0.5).collect();
    bytes_of(&numbers)
}

fn sum_with_ones(import: &Import) -> Vec<f32> {
    floats_of(&run(import, &[&bytes_of(&[1.0; 40])], 160))
}

#[test]
fn constants_are_read_from_the_file_beside_the_model() {
    let folder = tempdir().unwrap();
    for name in ["weights.bin", "more/weights.bin"] {
        let model = sum(name).bytes();
        let path = write(&folder, &[("model.tflite", &model), (name, &weights())]);
        let expected: Vec<f32> = (8..48_u8).map(|it| f32::from(it) * 0.5 + 1.0).collect();
        let import = import_file(&path).unwrap();
        assert_eq!(sum_with_ones(&import), expected);
        let stored = open_file(&path).unwrap();
        let range = import.tensors[1].stored.clone().unwrap();
        assert_eq!(stored.read(&range).unwrap(), weights()[32..]);
    }
}

#[test]
fn without_the_file_beside_it_the_model_says_what_is_missing() {
    let found = reasons(&sum("weights.bin"));
    assert!(found[0].contains("the value of \"tensor 1\" is not there: it is in"), "{found:?}");
    assert!(found[0].contains("\"weights.bin\", a file beside the model's"), "{found:?}");
    let mut packed = sum("weights.bin");
    buffer(&mut packed).packing = Some("gpu_tiles".into());
    let found = reasons(&packed);
    assert!(found[0].contains("packed as \"gpu_tiles\", expected \"unpacked\""), "{found:?}");
    // What the file says can be shown.
    let memory = nnhal_hal::Memory::from_bytes(&packed.bytes()).unwrap();
    assert_eq!(describe_memory(&memory).unwrap().subgraphs[0].tensors[1].stored, None);
}

#[test]
fn files_elsewhere_and_bytes_that_are_not_there_are_refused() {
    let folder = tempdir().unwrap();
    let refusal = |draft: &Draft, files: &[(&str, &[u8])]| {
        let model = draft.bytes();
        let path = write(&folder, &[&[("model.tflite", &*model)], files].concat());
        match import_file(&path) {
            Err(error @ ImportError::Malformed { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let weights = weights();
    let absolute = folder.path().join("weights.bin");
    let absolute = absolute.to_str().unwrap();
    for name in ["../weights.bin", absolute, "", ".", "a/../weights.bin"] {
        let found = refusal(&sum(name), &[("weights.bin", &weights)]);
        let expected = format!("external buffer group 1: {name:?}, expected the name of a file");
        assert!(found.starts_with(&expected), "{found}");
    }
    let found = refusal(&sum("missing.bin"), &[]);
    assert!(found.contains("\"missing.bin\" cannot be opened: No such file"), "{found}");
    let found = refusal(&sum("short.bin"), &[("short.bin", &weights[..191])]);
    assert!(found.contains("160 bytes at 32 are outside of \"short.bin\""), "{found}");
    let with_weights = [("weights.bin", &*weights)];
    let change = |change: &dyn Fn(&mut Draft)| {
        let mut draft = sum("weights.bin");
        change(&mut draft);
        refusal(&draft, &with_weights)
    };
    for (offset, length) in [(u64::MAX, 160), (32, u64::MAX), (1 << 40, 160), (1 << 41, 0)] {
        let found = change(&|draft| {
            (buffer(draft).offset, buffer(draft).length) = (offset, length);
        });
        assert!(found.contains("are outside of \"weights.bin\""), "{found}");
    }
    let found = change(&|draft| buffer(draft).id = 7);
    assert_eq!(found, "subgraph 0, tensor 1: there is no external buffer 2147483648");
    let found = change(&|draft| buffer(draft).group = 2);
    assert!(found.starts_with("external buffer group 2: "), "{found}");
    let found = change(&|draft| {
        let constant = draft.floats(&[1], &[1.0]);
        draft.tensor_mut(constant).external_buffer = ID;
    });
    assert!(found.contains("it has a buffer and an external buffer, expected one"), "{found}");
}

#[test]
fn no_more_files_are_opened_than_a_model_may_name() {
    let folder = tempdir().unwrap();
    let mut draft = sum("weights.bin");
    let names = (0..300).map(|at| ExternalBufferGroup { name: Some(format!("{at}.bin")) });
    draft.model.external_buffer_groups = Some(names.collect());
    let buffers =
        (0..300).map(|group| ExternalBuffer { group, id: ID + group, ..ExternalBuffer::default() });
    draft.model.external_buffers = Some(buffers.collect());
    let error = import_file(&write(&folder, &[("model.tflite", &draft.bytes())])).unwrap_err();
    assert!(error.to_string().contains("they are 300 files, expected 256 at most"), "{error}");
}

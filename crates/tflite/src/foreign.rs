//! What a file that is no model probably is, by its first bytes.

/// Bytes at the beginning of a file that [`kind`] looks at.
pub(crate) const BEGINNING: usize = 512;
/// Letters of a text that are shown.
const SHOWN: usize = 60;

/// Beginnings, and what files are that begin so.
const KINDS: &[(&[u8], &str)] = &[
    (
        b"version https://git-lfs",
        "a pointer of Git LFS, which only names the file; `git lfs pull` fetches the file itself",
    ),
    (
        b"PK\x03\x04",
        "a ZIP archive (as .task, .keras and .zip files are): the model may be one of the files in it",
    ),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x1F\x8B", "compressed by gzip: decompress it first"),
    (b"BZh", "compressed by bzip2: decompress it first"),
    (b"\xFD7zXZ\0", "compressed by xz: decompress it first"),
    (b"\x28\xB5\x2F\xFD", "compressed by Zstandard: decompress it first"),
    (b"7z\xBC\xAF\x27\x1C", "a 7-Zip archive: the model may be one of the files in it"),
    (b"LITERTLM", "a LiteRT-LM file (.litertlm), in which models are one part among others"),
    (b"GGUF", "a GGUF file, as llama.cpp uses them"),
    (
        b"\x89HDF\r\n\x1A\n",
        "an HDF5 file, as Keras saves models (.h5): convert it to .tflite first",
    ),
    (b"\x93NUMPY", "an array of NumPy (.npy)"),
    (b"\x7FELF", "a program or library (ELF)"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a PNG image"),
    (b"\xFF\xD8\xFF", "a JPEG image"),
    (b"\x80\x02", "pickled by Python, as PyTorch saved models: convert it to .tflite first"),
    (b"\x80\x04", "pickled by Python: convert the model to .tflite first"),
];

/// A sentence about a file that is no model.
pub(crate) fn sentence(beginning: &[u8], size: usize) -> String {
    const TOO_SHORT: usize = 8;
    match kind(beginning) {
        Some(kind) => format!("it looks like {kind}"),
        None if size < TOO_SHORT => format!("it has only {size} bytes"),
        None => "bytes 4 to 7 are not \"TFL3\"".into(),
    }
}

fn kind(beginning: &[u8]) -> Option<String> {
    if let Some((_, kind)) = KINDS.iter().find(|(start, _)| beginning.starts_with(start)) {
        return Some((*kind).into());
    }
    if beginning.len() >= 64 && beginning.iter().all(|byte| *byte == 0) {
        return Some("a download that did not finish: it begins with zeros".into());
    }
    if beginning.get(257..262) == Some(b"ustar") {
        return Some("a tar archive: the model may be one of the files in it".into());
    }
    match beginning.get(4..8) {
        Some([b'T', b'F', b'L', version]) if version.is_ascii_digit() => {
            let version = char::from(*version);
            return Some(format!(
                "a model of version {version} of the format; only version 3 is read"
            ));
        }
        Some([b'E', b'T', a, b]) if a.is_ascii_digit() && b.is_ascii_digit() => {
            return Some("a program of ExecuTorch (.pte)".into());
        }
        _ => {}
    }
    of_protocol_buffers(beginning).map(Into::into).or_else(|| of_text(beginning))
}

/// Models of other frameworks are messages of Protocol Buffers, whose first fields are nearly always the same.
fn of_protocol_buffers(beginning: &[u8]) -> Option<&'static str> {
    // A field is its number and the kind of its value: 0x08 the number 1 and an integer, 0x12 the number 2 and a string
    // or a message.
    match beginning {
        [0x08, 1, 0x12, ..] => {
            Some("a SavedModel of TensorFlow (saved_model.pb): convert it to .tflite first")
        }
        [0x08, 2..=0x1F, 0x12 | 0x1A | 0x22 | 0x28 | 0x32 | 0x3A | 0x42, ..] => {
            Some("an ONNX model: convert it to .tflite first")
        }
        [0x0A, _, 0x0A, ..] | [0x0A, _, 1, 0x0A, ..] => {
            Some("a graph of TensorFlow (.pb): convert it to .tflite first")
        }
        _ => None,
    }
}

/// What a text is.
fn of_text(beginning: &[u8]) -> Option<String> {
    let end = beginning.len().saturating_sub(3);
    let text = match std::str::from_utf8(beginning) {
        Ok(text) => text,
        // Only the last letter may be cut off.
        Err(error) if beginning.len() == BEGINNING && error.valid_up_to() >= end => {
            std::str::from_utf8(&beginning[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_plain = |letter: char| !letter.is_control() || letter.is_ascii_whitespace();
    if !text.chars().all(is_plain) {
        return None;
    }
    let text = text.trim_start_matches('\u{FEFF}').trim_start();
    let first = text.lines().next().filter(|line| !line.is_empty())?;
    let starts = |start: &str| {
        text.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start))
    };
    if starts("<!doctype html") || starts("<html") {
        let page = "a page of HTML, as a site shows instead of the file: an error, or a log-in";
        return Some(page.into());
    }
    let shown: String = first.chars().take(SHOWN).collect();
    Some(format!("text, not a model; it begins with {shown:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_are_named() {
        let rows: &[(&[u8], &str)] = &[
            (b"PK\x03\x04\x14\0\0\0", "ZIP archive"),
            (b"\x08\x07\x12\x07pytorch\x1A\x05", "an ONNX model"),
            (b"\x08\x01\x12\xF0\x01", "a SavedModel"),
            (b"\x0A\x1D\x0A\x05input", "a graph of TensorFlow"),
            (b"\xEF\xBB\xBF\n <!DOCTYPE HTML><title>404", "a page of HTML"),
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a", "git lfs pull"),
            (b"Entry not found", "text, not a model; it begins with \"Entry not found\""),
            ("Häuser\nund".as_bytes(), "begins with \"Häuser\""),
            (b"\x1C\0\0\0TFL2\0\0", "version 2 of the format"),
            (b"\x80\0\0\0ET12", "ExecuTorch"),
            (b"\x89HDF\r\n\x1A\n", "HDF5"),
            (&[0; 64], "a download that did not finish"),
            (b"\x01\x02\x03", "it has only 3 bytes"),
            (b"\x01\x02\x03\x04\x05\x06\x07\xFF\x09", "bytes 4 to 7"),
        ];
        for (beginning, expected) in rows {
            let found = sentence(beginning, beginning.len());
            assert!(found.contains(expected), "{beginning:?}: {found}");
        }
    }

    #[test]
    fn a_text_may_be_cut_within_a_letter_only_where_reading_stopped() {
        let long = format!("a{}", "ä".repeat(400)).into_bytes();
        let found = sentence(&long[..BEGINNING], long.len());
        assert!(found.contains("text") && found.len() < 200, "{found}");
        // Half a letter at the end of the file is none.
        let found = sentence(&long[..BEGINNING - 2], BEGINNING - 2);
        assert!(found.contains("bytes 4 to 7"), "{found}");
    }
}

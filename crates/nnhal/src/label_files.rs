//! [`label_files`]: which of a file's texts have the names of an output's classes, by TensorFlow Lite's metadata (`metadata_schema.fbs`).

/// The block of bytes that has the metadata.
pub(crate) const METADATA: &str = "TFLITE_METADATA";

/// Positions of fields in the tables of the schema.
const SUBGRAPHS: usize = 3;
const OUTPUTS: usize = 3;
const FILES: usize = 6;
const FILE_NAME: usize = 0;
const FILE_TYPE: usize = 2;

/// Kinds of files that have names of classes: not said, names along an axis, names by value.
const KINDS: [u8; 3] = [0, 2, 3];

/// Entries of a list that are looked at.
const MOST_ENTRIES: usize = 1000;

/// The files with the names of an output's classes; `None` if nothing is said of that.
pub(crate) fn label_files(metadata: &[u8], subgraph: usize, output: usize) -> Option<Vec<String>> {
    let bytes = Bytes(metadata);
    let root = bytes.behind(0)?;
    let of_subgraph = bytes.entry(bytes.field(root, SUBGRAPHS)?, subgraph)?;
    let of_output = bytes.entry(bytes.field(of_subgraph, OUTPUTS)?, output)?;
    let mut names = Vec::new();
    let Some(files) = bytes.field(of_output, FILES) else { return Some(names) };
    for at in 0..MOST_ENTRIES {
        let Some(file) = bytes.entry(files, at) else { break };
        let kind = bytes.place(file, FILE_TYPE).and_then(|at| metadata.get(at).copied());
        let name = bytes.field(file, FILE_NAME).and_then(|at| bytes.text(at));
        if KINDS.contains(&kind.unwrap_or(0)) {
            names.extend(name);
        }
    }
    Some(names)
}

/// Tables of FlatBuffers that a stranger wrote: whatever leads out of the bytes is not there.
struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn number(&self, at: usize) -> Option<usize> {
        let bytes = self.0.get(at..)?.first_chunk()?;
        usize::try_from(u32::from_le_bytes(*bytes)).ok()
    }

    fn short(&self, at: usize) -> Option<usize> {
        self.0.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes).into())
    }

    /// Where the number at a place leads.
    fn behind(&self, at: usize) -> Option<usize> {
        at.checked_add(self.number(at)?)
    }

    /// Where a table has a field.
    fn place(&self, table: usize, field: usize) -> Option<usize> {
        let bytes = self.0.get(table..)?.first_chunk()?;
        let back = i64::from(i32::from_le_bytes(*bytes));
        let fields = usize::try_from(i64::try_from(table).ok()?.checked_sub(back)?).ok()?;
        let at = 4 + 2 * field;
        if at + 2 > self.short(fields)? {
            return None;
        }
        let offset = self.short(fields.checked_add(at)?)?;
        if offset == 0 { None } else { table.checked_add(offset) }
    }

    /// Where a table's list, text or table is.
    fn field(&self, table: usize, field: usize) -> Option<usize> {
        self.behind(self.place(table, field)?)
    }

    /// Where a table of a list is.
    fn entry(&self, list: usize, at: usize) -> Option<usize> {
        if at >= self.number(list)? {
            return None;
        }
        self.behind(list.checked_add(4)?.checked_add(at.checked_mul(4)?)?)
    }

    fn text(&self, at: usize) -> Option<String> {
        let length = self.number(at)?;
        let begin = at.checked_add(4)?;
        let bytes = self.0.get(begin..begin.checked_add(length)?)?;
        String::from_utf8(bytes.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Metadata of two outputs, whose files are these.
    fn metadata(files: [&[(&str, u8)]; 2]) -> Vec<u8> {
        /// A table whose fields are four bytes each; what they lead to is written behind it.
        fn table(out: &mut Vec<u8>, fields: &[usize]) -> (usize, Vec<usize>) {
            let count = fields.iter().max().map_or(0, |most| most + 1);
            let begin = out.len();
            let length = u16::try_from(4 + 2 * count).unwrap();
            let of_table = u16::try_from(4 + 4 * fields.len()).unwrap();
            out.extend([length.to_le_bytes(), of_table.to_le_bytes()].concat());
            for field in 0..count {
                let position = fields.iter().position(|it| *it == field);
                let offset = position.map_or(0, |at| u16::try_from(4 + 4 * at).unwrap());
                out.extend(offset.to_le_bytes());
            }
            let at = out.len();
            out.extend(i32::try_from(at - begin).unwrap().to_le_bytes());
            let places = (0..fields.len()).map(|field| at + 4 + 4 * field).collect();
            out.resize(at + 4 + 4 * fields.len(), 0);
            (at, places)
        }
        fn lead(out: &mut [u8], from: usize, to: usize) {
            out[from..from + 4].copy_from_slice(&u32::try_from(to - from).unwrap().to_le_bytes());
        }
        fn list(out: &mut Vec<u8>, from: usize, count: usize) -> Vec<usize> {
            let at = out.len();
            lead(out, from, at);
            out.extend(u32::try_from(count).unwrap().to_le_bytes());
            out.resize(at + 4 + 4 * count, 0);
            (0..count).map(|entry| at + 4 + 4 * entry).collect()
        }
        let mut out = vec![0; 4];
        let (root, places) = table(&mut out, &[SUBGRAPHS]);
        lead(&mut out, 0, root);
        let subgraphs = list(&mut out, places[0], 1);
        let (subgraph, places) = table(&mut out, &[OUTPUTS]);
        lead(&mut out, subgraphs[0], subgraph);
        let outputs = list(&mut out, places[0], 2);
        for (files, place) in files.iter().zip(outputs) {
            let (output, places) = table(&mut out, &[FILES]);
            lead(&mut out, place, output);
            let entries = list(&mut out, places[0], files.len());
            for ((name, kind), entry) in files.iter().zip(entries) {
                let (file, places) = table(&mut out, &[FILE_NAME, FILE_TYPE]);
                lead(&mut out, entry, file);
                out[places[1]] = *kind;
                let at = out.len();
                lead(&mut out, places[0], at);
                out.extend(u32::try_from(name.len()).unwrap().to_le_bytes());
                out.extend(name.as_bytes());
            }
        }
        out
    }

    #[test]
    fn files_belong_to_their_output() {
        let all = metadata([&[("a.txt", 2), ("words.txt", 5)], &[("b.txt", 3), ("c.txt", 0)]]);
        assert_eq!(label_files(&all, 0, 0), Some(vec!["a.txt".to_owned()]));
        assert_eq!(label_files(&all, 0, 1), Some(vec!["b.txt".to_owned(), "c.txt".to_owned()]));
        assert_eq!((label_files(&all, 0, 2), label_files(&all, 1, 0)), (None, None));
        assert_eq!(label_files(&metadata([&[], &[]]), 0, 0), Some(Vec::new()));
        assert_eq!(label_files(b"", 0, 0), None);
    }

    #[test]
    fn sec_metadata_that_is_changed_or_broken_off_is_read_or_not() {
        let all = metadata([&[("a.txt", 2)], &[("b.txt", 3)]]);
        for at in 0..all.len() {
            label_files(&all[..at], 0, 1);
            for value in [0, 1, 4, 0x7f, 0x80, 0xff] {
                let mut changed = all.clone();
                changed[at] = value;
                label_files(&changed, 0, 1);
                changed[at..].iter_mut().take(4).for_each(|byte| *byte = value);
                label_files(&changed, 0, 0);
            }
        }
    }
}

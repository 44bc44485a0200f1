//! The protocol's names of element types.

use nnhal::DataType;

/// Texts: results of a classification; no model takes or gives them.
pub(crate) const TEXT: &str = "BYTES";

/// By name in the protocol, and in a model's configuration.
const NAMES: [(&str, &str, DataType); 13] = [
    ("BOOL", "TYPE_BOOL", DataType::Bool),
    ("UINT8", "TYPE_UINT8", DataType::Uint8),
    ("UINT16", "TYPE_UINT16", DataType::Uint16),
    ("UINT32", "TYPE_UINT32", DataType::Uint32),
    ("UINT64", "TYPE_UINT64", DataType::Uint64),
    ("INT8", "TYPE_INT8", DataType::Int8),
    ("INT16", "TYPE_INT16", DataType::Int16),
    ("INT32", "TYPE_INT32", DataType::Int32),
    ("INT64", "TYPE_INT64", DataType::Int64),
    ("FP16", "TYPE_FP16", DataType::Float16),
    ("BF16", "TYPE_BF16", DataType::Bfloat16),
    ("FP32", "TYPE_FP32", DataType::Float32),
    ("FP64", "TYPE_FP64", DataType::Float64),
];

/// What the protocol calls a type; `None` for one that no tensor of a run has.
pub(crate) fn name(data_type: DataType) -> Option<&'static str> {
    NAMES.iter().find(|(.., known)| *known == data_type).map(|(name, ..)| *name)
}

/// What a message calls a type: as the protocol does, if it has a name for it.
pub(crate) fn shown(data_type: DataType) -> String {
    name(data_type).map_or_else(|| data_type.to_string(), str::to_owned)
}

/// What a configuration calls a type.
pub(crate) fn config_name(data_type: DataType) -> Option<&'static str> {
    NAMES.iter().find(|(.., known)| *known == data_type).map(|(_, name, _)| *name)
}

/// The type of this name, of either kind.
pub(crate) fn from_name(name: &str) -> Option<DataType> {
    let found = NAMES.iter().find(|(short, long, _)| *short == name || *long == name);
    found.map(|(.., data_type)| *data_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_there_and_back() {
        for (short, long, data_type) in NAMES {
            assert_eq!(name(data_type), Some(short));
            assert_eq!((from_name(short), from_name(long)), (Some(data_type), Some(data_type)));
        }
        assert_eq!(from_name("BYTES"), None);
        assert_eq!(name(DataType::Int4), None);
    }
}

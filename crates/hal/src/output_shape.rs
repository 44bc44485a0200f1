//! [`OutputShape`]: what an execution answers about an output, with success and with a buffer that was too short.

/// The final shape of an output (1.2 on; contract: SHAPE-3 to SHAPE-5).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OutputShape {
    /// With success the exact dimensions, where 0 really means none.
    pub dimensions: Vec<u32>,
    /// Whether the buffer given was long enough.
    pub is_sufficient: bool,
}

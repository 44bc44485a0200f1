//! Versions of the builtin operators.

use super::BuiltinOperator as B;

/// The greatest version of an operator that LiteRT 2.3 has a kernel for, and this program knows. A file asks for a version
/// because of what came with it: a newer one may mean what nothing here takes notice of.
pub(crate) fn greatest_version(operator: B) -> i32 {
    match operator {
        B::Cos
        | B::DepthToSpace
        | B::Div
        | B::Exp
        | B::FakeQuant
        | B::FloorMod
        | B::Greater
        | B::L2Normalization
        | B::LeakyRelu
        | B::LessEqual
        | B::Log
        | B::LogSoftmax
        | B::Range
        | B::ReduceProd
        | B::SelectV2
        | B::Sign
        | B::Sin
        | B::SpaceToDepth
        | B::Sqrt
        | B::SquaredDifference
        | B::Squeeze
        | B::Sum
        | B::Where => 2,
        B::ArgMax
        | B::ArgMin
        | B::AveragePool2d
        | B::BidirectionalSequenceLstm
        | B::BidirectionalSequenceRnn
        | B::FloorDiv
        | B::Gelu
        | B::GreaterEqual
        | B::Less
        | B::Logistic
        | B::MaxPool2d
        | B::Mean
        | B::MirrorPad
        | B::ReduceMax
        | B::ReduceMin
        | B::Relu
        | B::Relu6
        | B::Rnn
        | B::Rsqrt
        | B::SparseToDense
        | B::SplitV
        | B::Tanh
        | B::Tile
        | B::TopkV2
        | B::UnidirectionalSequenceRnn => 3,
        B::BatchMatmul
        | B::BatchToSpaceNd
        | B::BroadcastTo
        | B::Lstm
        | B::Maximum
        | B::Minimum
        | B::NotEqual
        | B::ResizeBilinear
        | B::ResizeNearestNeighbor
        | B::ReverseV2
        | B::Select
        | B::Softmax
        | B::SpaceToBatchNd
        | B::Svdf
        | B::UnidirectionalSequenceLstm => 4,
        B::Abs
        | B::EmbeddingLookup
        | B::Equal
        | B::Fill
        | B::Pack
        | B::Split
        | B::Sub
        | B::TransposeConv => 5,
        B::Add
        | B::DynamicUpdateSlice
        | B::GatherNd
        | B::Pad
        | B::Padv2
        | B::Quantize
        | B::Unpack => 6,
        B::Concatenation | B::DepthwiseConv2d => 7,
        B::Conv2d | B::Gather | B::Mul | B::Slice | B::StridedSlice => 8,
        B::Cast | B::Dequantize | B::Transpose => 9,
        B::FullyConnected => 14,
        _ => 1,
    }
}

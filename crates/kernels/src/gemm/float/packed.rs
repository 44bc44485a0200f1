//! [`PackedProduct`]: a matrix product whose right side is known when it is prepared.

#[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
use super::SplitProduct;
use super::{Arguments, Blocking, FewColumns, Gemm, Layer, Panels, RowsPlan};
use crate::{InstructionSet, Preparation, Team, TooLarge};

/// A product with its right side packed, by the method that takes the least time.
#[derive(Debug)]
pub(crate) enum PackedProduct {
    /// By vectors of float32.
    Vectors(Gemm),
    /// By vectors of the depth.
    FewColumns(FewColumns),
    /// By tiles of bfloat16.
    #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
    Split(SplitProduct),
}

impl PackedProduct {
    /// Packs weights `[groups, group_columns, depth]` and a bias for each column. By `chosen_for`, a number of rows, the method
    /// is chosen: the same one for models that differ in how many images are computed together, which then have packed
    /// weights in common.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    pub(crate) fn new(
        (rows, chosen_for): (RowsPlan, usize),
        blocking: Blocking,
        (depth, [groups, group_columns]): (usize, [usize; 2]),
        layer: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let set = preparation.set();
        let sizes = [chosen_for, depth, group_columns];
        #[cfg(not(all(target_arch = "x86_64", not(nnhal_only_avx2))))]
        let _ = sizes;
        #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
        if groups == 1 && !Self::suits_vectors(set, preparation.threads(), sizes) {
            let product = SplitProduct::new(rows, depth, layer, preparation)?;
            return Ok(Self::Split(product));
        }
        let Layer { filter, bias, epilogue } = layer;
        let (columns, bias_of) = ([groups, group_columns], |n: usize| bias[n]);
        let panels = Panels::pack_columns(preparation, blocking, depth, columns, bias_of, filter)?;
        let gemm = Gemm::new(set, preparation.threads(), rows, panels, epilogue);
        let scratch = gemm.checked_scratch_bytes().unwrap_or(usize::MAX);
        preparation.check_scratch::<u8>(&[scratch]).map(|()| Self::Vectors(gemm))
    }

    /// Whether a product of these rows, depth and columns would be computed by vectors.
    pub(crate) fn suits_vectors(set: InstructionSet, threads: usize, sizes: [usize; 3]) -> bool {
        #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
        return !SplitProduct::suits(set, threads, sizes);
        #[cfg(not(all(target_arch = "x86_64", not(nnhal_only_avx2))))]
        {
            let _ = (set, threads, sizes);
            true
        }
    }

    /// The method's name, for profiles.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Vectors(_) => "gemm",
            Self::FewColumns(_) => "dot products",
            #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
            Self::Split(_) => "split gemm",
        }
    }

    /// Bytes of scratch memory that [`Self::run`] needs.
    pub(crate) fn scratch_bytes(&self) -> usize {
        match self {
            Self::Vectors(gemm) => gemm.scratch_bytes(),
            Self::FewColumns(product) => product.scratch_bytes(),
            #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
            Self::Split(product) => product.scratch_bytes(),
        }
    }

    /// Computes the product.
    ///
    /// # Panics
    /// If the rows are others than planned, or the output, the residual or the scratch memory is too small.
    pub(crate) fn run(&self, team: &mut Team, arguments: Arguments<'_>) {
        match self {
            Self::Vectors(gemm) => gemm.run(team, arguments),
            Self::FewColumns(product) => product.run(team, arguments),
            #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
            Self::Split(product) => product.run(team, arguments),
        }
    }
}

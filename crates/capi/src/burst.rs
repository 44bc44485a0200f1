//! Bursts: many computations in close succession.

use crate::border::export;
use crate::compilation::ANeuralNetworksCompilation;
use crate::handle;
use crate::pointer::Out;
use nnhal_runtime::Burst;
use std::sync::Arc;

nnhal_c_boundary::opaque! {
    /// A burst.
    ANeuralNetworksBurst: Burst, 5;
}

export! {
    /// Opens a burst to the devices of a compilation.
    fn ANeuralNetworksBurst_create(
        compilation: *mut ANeuralNetworksCompilation,
        burst: Out<*mut ANeuralNetworksBurst>,
    ) {
        burst.write(std::ptr::null_mut());
        let compilation = handle::get(compilation, "compilation")?;
        burst.check("burst")?;
        burst.write(handle::give(Arc::new(Burst::new(&compilation.finished()?)))?);
        Ok(())
    }

    /// Frees it.
    fn ANeuralNetworksBurst_free(burst: *mut ANeuralNetworksBurst) -> (), (); {
        handle::free(burst, "ANeuralNetworksBurst_free", "burst");
    }
}

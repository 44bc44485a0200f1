//! Parcels of the AIDL interface from strangers: what is read is converted, and what was converted goes
//! back as it came.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nnhal_aidl::convert;
use nnhal_aidl::interface::nn;
use rsbinder::from_bytes;

fuzz_target!(|input: (u8, &[u8])| {
    let (kind, bytes) = input;
    match kind % 6 {
        0 => {
            let Ok(model) = from_bytes::<nn::Model::Model>(bytes) else { return };
            let Ok(model) = convert::model_from_wire(&model) else { return };
            let back = convert::model_to_wire(&model).expect("it came from there");
            let again = convert::model_from_wire(&back).expect("it was one");
            assert_eq!(format!("{:?}", again.main), format!("{:?}", model.main));
        }
        1 => {
            let Ok(request) = from_bytes::<nn::Request::Request>(bytes) else { return };
            let pool = |_, memory: &_| convert::memory_from_wire(memory);
            let Ok(request) = convert::request_from_wire(&request, pool) else { return };
            convert::request_to_wire(&request).expect("it came from there");
        }
        2 => {
            let Ok(stated) = from_bytes::<nn::Capabilities::Capabilities>(bytes) else { return };
            let _ = convert::capabilities_from_wire(&stated);
        }
        3 => {
            let Ok(result) = from_bytes::<nn::ExecutionResult::ExecutionResult>(bytes) else {
                return;
            };
            let _ = convert::shapes_from_wire(&result.outputShapes);
            let _ = convert::timing_from_wire(&result.timing);
        }
        4 => {
            let _ = from_bytes::<nn::PrepareModelConfig::PrepareModelConfig>(bytes);
            let _ = from_bytes::<nn::ExecutionConfig::ExecutionConfig>(bytes);
        }
        _ => {
            let Ok(extension) = from_bytes::<nn::Extension::Extension>(bytes) else { return };
            let _ = convert::extensions_from_wire(&[extension]);
        }
    }
});

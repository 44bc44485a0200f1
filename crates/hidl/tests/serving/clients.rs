//! Clients that panic or are gone.

use super::*;

/// A client that panics when it is notified.
struct Panics;

impl v1_0::IPreparedModelCallback for Panics {
    fn notify(&self, _status: i32, _model: Option<Arc<dyn v1_0::IPreparedModel>>) -> Return<()> {
        panic!("on purpose")
    }
}

impl v1_0::IExecutionCallback for Panics {
    fn notify(&self, _status: i32) -> Return<()> {
        panic!("on purpose")
    }
}

/// A client that is not there any more.
struct Dead;

impl v1_0::IPreparedModelCallback for Dead {
    fn notify(&self, _status: i32, _model: Option<Arc<dyn v1_0::IPreparedModel>>) -> Return<()> {
        Err(nnhal_hidl::TransportError::DeadObject)
    }
}

#[test]
fn cb_2_clients_that_panic_or_are_gone_harm_no_others() {
    let device = served();
    let sample = add_constant();
    let model = to::<v1_0::Model>(&sample.model);
    for _ in 0..100 {
        assert_eq!(device.prepare_model(&model, Some(Arc::new(Panics))).unwrap(), NONE);
        assert_eq!(device.prepare_model(&model, Some(Arc::new(Dead))).unwrap(), NONE);
        let bad = to::<v1_0::Model>(&invalid());
        assert_eq!(device.prepare_model(&bad, Some(Arc::new(Panics))).unwrap(), INVALID);
    }
    let prepared = prepared(&device, &sample.model);
    for _ in 0..100 {
        let request = to(&sample.request());
        assert_eq!(prepared.execute(&request, Some(Arc::new(Panics))).unwrap(), NONE);
    }
    let request = sample.request();
    let (status, _, _) = prepared.execute_synchronously(&to(&request), NO).unwrap();
    assert_eq!(status, NONE);
    sample.assert_result(&request);
}

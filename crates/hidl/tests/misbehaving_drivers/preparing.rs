//! Preparing, and callbacks as such.

use super::*;

fn prepared_badly(
    prepare_model: impl Fn(PreparedCallback) -> Return<i32> + Send + Sync + 'static,
) -> Misbehaviour {
    let refused = prepare(&*Driver::preparing(prepare_model).device()).err().unwrap();
    misbehaviour(&refused).clone()
}

const PREPARE: &str = "prepareModel_1_3";

#[test]
fn a_model_that_is_missing_is_noticed() {
    let found = prepared_badly(|callback| callback.notify_1_3(NONE, None).map(|()| NONE));
    assert_eq!(found, Misbehaviour::Nothing { method: PREPARE, what: "prepared model" });
    let found = prepared_badly(|callback| callback.notify(NONE, None).map(|()| NONE));
    assert_eq!(found, Misbehaviour::Nothing { method: PREPARE, what: "prepared model" });
}

#[test]
fn a_model_that_comes_with_an_error_is_ignored() {
    let driver = Driver::preparing(|callback| {
        callback.notify_1_3(FAILURE, Some(Arc::new(Model::new()))).map(|()| NONE)
    });
    let refused = prepare(&*driver.device()).err().unwrap();
    let reason: &client::Answered = refused.reason().unwrap();
    assert_eq!(reason.status, ErrorStatus::GeneralFailure);
}

#[test]
fn ipc_5_a_callback_that_is_let_go_ends_the_wait() {
    let never = Misbehaviour::NeverNotified { method: PREPARE };
    assert_eq!(prepared_badly(|_| Ok(NONE)), never);
    let later = |callback: PreparedCallback| {
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            drop(callback);
        });
        Ok(NONE)
    };
    assert_eq!(prepared_badly(later), never);
}

#[test]
fn a_callback_that_is_kept_for_ever_ends_the_wait_when_timeout_does() {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keeps = Arc::clone(&kept);
    let driver = Driver::preparing(move |callback| {
        keeps.lock().unwrap().push(callback);
        Ok(NONE)
    });
    let options = Options { timeout: Duration::from_millis(30), ..Options::default() };
    let device = driver.clone().device_with(options);
    let refused = prepare(&*device).err().unwrap();
    assert_eq!(misbehaviour(&refused), &Misbehaviour::NotInTime { method: PREPARE, seconds: 0 });
    // What comes too late harms no one.
    kept.lock().unwrap().pop().unwrap().notify_1_3(NONE, Some(Arc::new(Model::new()))).unwrap();

    // A client can give up before.
    let device = driver.device();
    let cancellation = Cancellation::new();
    let switch = cancellation.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        switch.cancel();
    });
    let options = PrepareOptions { cancellation: Some(cancellation), ..PrepareOptions::default() };
    let begin = Instant::now();
    assert!(device.prepare_model(&add_constant().model, HalVersion::V1_3, options).is_err());
    assert!(begin.elapsed() < common::LONG);
}

#[test]
fn cb_1_of_several_notifications_the_first_counts() {
    let driver = Driver::preparing(|callback| {
        callback.notify_1_3(NONE, Some(Arc::new(Model::new())))?;
        callback.notify_1_3(FAILURE, None)?;
        callback.notify(STRANGE, None)?;
        Ok(NONE)
    });
    assert!(prepare(&*driver.device()).is_ok());
    let model = Model::executing(|callback| {
        callback.notify_1_3(NONE, &[], Timing::NONE)?;
        callback.notify_1_2(FAILURE, &[], Timing::NONE)?;
        callback.notify(STRANGE)?;
        Ok(NONE)
    });
    let request = add_constant().request();
    assert!(model.prepared_asynchronous().execute(&request, &ExecutionOptions::default()).is_ok());
}

#[test]
fn a_launch_error_counts_whatever_the_callback_says() {
    let driver = Driver::preparing(|callback| {
        callback.notify_1_3(NONE, Some(Arc::new(Model::new())))?;
        Ok(ErrorStatus::DeviceUnavailable.code())
    });
    let refused = prepare(&*driver.device()).err().unwrap();
    assert_eq!(refused.status(), ErrorStatus::DeviceUnavailable);
    // And no one waits for a callback after it.
    let kept = Mutex::new(Vec::new());
    let driver = Driver::preparing(move |callback| {
        kept.lock().unwrap().push(callback);
        Ok(FAILURE)
    });
    assert!(prepare(&*driver.device()).is_err());
}

#[test]
fn gen_7_numbers_that_are_no_status_are_noticed() {
    let status = Misbehaviour::Status { method: PREPARE, code: STRANGE };
    assert_eq!(prepared_badly(|_| Ok(STRANGE)), status);
    assert_eq!(prepared_badly(|callback| callback.notify(STRANGE, None).map(|()| NONE)), status);
    let device = Driver::new().device();
    assert_eq!(device.status(), nnhal_hal::DeviceStatus::Unknown);
}

#[test]
fn drivers_that_panic_or_are_gone_fail_the_call() {
    let panics = Misbehaviour::Panicked { method: PREPARE };
    assert_eq!(prepared_badly(|_| panic!("on purpose")), panics);
    let driver = Driver::preparing(|_| Err(TransportError::DeadObject));
    let refused = prepare(&*driver.device()).err().unwrap();
    assert_eq!(refused.status(), ErrorStatus::DeviceUnavailable);
    assert_eq!(refused.reason(), Some(&TransportError::DeadObject));
    assert!(refused.is_gone());
    // One that asks to be cast.
    let refused = client::from_newest("test-driver", Arc::new(Driver::new())).err().unwrap();
    assert_eq!(misbehaviour(&refused), &Misbehaviour::Panicked { method: "castFrom" });
    let refused = client::from_v1_1("test-driver", Arc::new(Driver::new())).err().unwrap();
    assert_eq!(refused.status(), ErrorStatus::DeviceUnavailable);
}

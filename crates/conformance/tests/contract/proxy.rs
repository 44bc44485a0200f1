//! Between a burst and its client: packets that go through are changed as a [`Breach`] says.

use crate::broken::{Breach, MISSED, NONE};
use nnhal_burst::{FmqRequestDatum, FmqResultDatum, MessageQueue};
use nnhal_hidl::v1_2::{IBurstCallback, IBurstContext};
use nnhal_hidl::{MQDescriptor, Return, v1_3};
use std::sync::Arc;
use std::time::Duration;

type Answer = Return<(i32, Option<Arc<dyn IBurstContext>>)>;

/// Configures a burst of `model` whose packets are changed.
pub fn configure(
    model: &dyn v1_3::IPreparedModel,
    breach: Breach,
    callback: Option<Arc<dyn IBurstCallback>>,
    requests: &MQDescriptor,
    results: &MQDescriptor,
) -> Answer {
    let own_requests =
        MessageQueue::<FmqRequestDatum>::create(nnhal_burst::QUEUE_CAPACITY).unwrap();
    let own_results = MessageQueue::<FmqResultDatum>::create(nnhal_burst::QUEUE_CAPACITY).unwrap();
    let descriptor = |it| MQDescriptor::from(it);
    let answer = model.configure_execution_burst(
        callback,
        &descriptor(own_requests.descriptor().unwrap()),
        &descriptor(own_results.descriptor().unwrap()),
    )?;
    let (NONE, Some(context)) = answer else { return Ok(answer) };
    let mut from_client =
        MessageQueue::<FmqRequestDatum>::open(requests.to_burst().unwrap()).unwrap().into_reader();
    let mut to_client =
        MessageQueue::<FmqResultDatum>::open(results.to_burst().unwrap()).unwrap().into_writer();
    let (mut to_driver, mut from_driver) = (own_requests.into_writer(), own_results.into_reader());
    // The context keeps the burst; here it ends when nothing is sent any more.
    let kept = Arc::clone(&context);
    std::thread::spawn(move || {
        let (mut request, mut result) = (Vec::new(), Vec::new());
        while from_client.read(&mut request, Some(Duration::from_secs(3))).is_ok() {
            if breach == Breach::SwapsFields {
                request.iter_mut().for_each(swap_offset_and_length);
            }
            to_driver.write(&request, None).unwrap();
            from_driver.read(&mut result, Some(Duration::from_secs(20))).unwrap();
            match breach {
                // The status is behind the size of the packet.
                Breach::SwallowsErrors if result[0].to_bytes()[12] != 0 => continue,
                Breach::DirtyPadding => result.iter_mut().for_each(spoil_padding),
                Breach::NewStatusesInBursts => result.iter_mut().for_each(name_missed),
                Breach::SplitsResults => {
                    to_client.write(&result[..1], None).unwrap();
                    std::thread::sleep(Duration::from_millis(2));
                    to_client.write(&result[1..], None).unwrap();
                    continue;
                }
                _ => {}
            }
            to_client.write(&result, None).unwrap();
        }
        drop(kept);
    });
    Ok((NONE, Some(context)))
}

fn swap_offset_and_length(datum: &mut FmqRequestDatum) {
    let mut bytes = datum.to_bytes();
    if bytes[0] == 1 {
        for index in 12..16 {
            bytes.swap(index, index + 4);
        }
    }
    *datum = FmqRequestDatum::from_bytes(bytes);
}

fn spoil_padding(datum: &mut FmqResultDatum) {
    let mut bytes = datum.to_bytes();
    if bytes[0] == 1 {
        bytes[9] = 0xAB;
    }
    *datum = FmqResultDatum::from_bytes(bytes);
}

fn name_missed(datum: &mut FmqResultDatum) {
    let mut bytes = datum.to_bytes();
    if bytes[0] == 0 && bytes[12] == 2 {
        bytes[12] = MISSED.to_ne_bytes()[0];
    }
    *datum = FmqResultDatum::from_bytes(bytes);
}

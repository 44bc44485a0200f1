//! Packets: what is written is read, everything else is refused.

use nnhal_burst::datum::{DATUM_BYTES, FmqRequestDatum, FmqResultDatum, RequestDatum, ResultDatum};
use nnhal_burst::packet::{PacketError, RequestPacket, ResultPacket};
use nnhal_hal::{DataLocation, ErrorStatus, OutputShape, RequestArgument, Timing};
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;

fn argument() -> impl Strategy<Value = RequestArgument> {
    let location = any::<[u32; 3]>().prop_map(|[pool_index, offset, length]| DataLocation {
        pool_index,
        offset,
        length,
    });
    (any::<bool>(), location, vec(any::<u32>(), 0..5)).prop_map(
        |(has_no_value, location, dimensions)| RequestArgument {
            has_no_value,
            location,
            dimensions,
        },
    )
}

fn request() -> impl Strategy<Value = RequestPacket> {
    let arguments = || vec(argument(), 0..5);
    (arguments(), arguments(), vec(any::<i32>(), 0..5), any::<bool>()).prop_map(
        |(inputs, outputs, slots, measure)| RequestPacket { inputs, outputs, slots, measure },
    )
}

fn encode(request: &RequestPacket) -> Vec<FmqRequestDatum> {
    let RequestPacket { inputs, outputs, slots, measure } = request;
    let mut data = Vec::new();
    RequestPacket::encode(inputs, outputs, slots, *measure, &mut data).unwrap();
    assert_eq!(data.len(), RequestPacket::length(inputs, outputs, slots.len()));
    data
}

fn result() -> impl Strategy<Value = ResultPacket> {
    let shapes = |sufficient, count| {
        vec(vec(any::<u32>(), 0..5), count).prop_map(move |shapes: Vec<Vec<u32>>| {
            let shape = |dimensions| OutputShape { dimensions, is_sufficient: sufficient };
            shapes.into_iter().map(shape).collect::<Vec<_>>()
        })
    };
    let time = || {
        any::<Option<u32>>().prop_map(|time| time.map(|time| Duration::from_micros(time.into())))
    };
    let good = (shapes(true, 0..5), time(), time()).prop_map(
        |(output_shapes, time_on_device, time_in_driver)| ResultPacket {
            status: ErrorStatus::None,
            output_shapes,
            timing: Timing { time_on_device, time_in_driver },
        },
    );
    let short = shapes(false, 1..5).prop_map(|output_shapes| ResultPacket {
        status: ErrorStatus::OutputInsufficientSize,
        output_shapes,
        timing: Timing::NONE,
    });
    let failed = prop_oneof![
        Just(ErrorStatus::InvalidArgument),
        Just(ErrorStatus::GeneralFailure),
        Just(ErrorStatus::DeviceUnavailable)
    ];
    prop_oneof![good, short, failed.prop_map(ResultPacket::failed)]
}

fn raw() -> impl Strategy<Value = [u8; DATUM_BYTES]> {
    // Tags and counts that mean something more often than not.
    let small = prop_oneof![0_u8..4, any::<u8>()];
    (0_u8..9, any::<bool>(), vec(small, DATUM_BYTES)).prop_map(|(tag, low, bytes)| {
        let mut datum: [u8; DATUM_BYTES] = bytes.try_into().unwrap();
        datum[0] = tag;
        if low {
            for (index, byte) in datum.iter_mut().enumerate() {
                *byte = if index % 4 == 0 { *byte } else { 0 };
            }
        }
        datum
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 16 } else { 1000 }))]

    #[test]
    fn burst_3_a_request_is_read_as_it_was_written(request in request()) {
        prop_assert_eq!(RequestPacket::decode(&encode(&request)), Ok(request));
    }

    #[test]
    fn burst_4_a_result_is_read_as_it_was_written(result in result()) {
        let mut data = Vec::new();
        result.encode(&mut data).unwrap();
        prop_assert_eq!(data.len(), result.length());
        prop_assert_eq!(ResultPacket::decode(&data), Ok(result));
    }

    #[test]
    fn gen_8_no_data_make_decoding_panic(data in vec(raw(), 0..12)) {
        let request: Vec<_> = data.iter().copied().map(FmqRequestDatum::from_bytes).collect();
        if let Ok(decoded) = RequestPacket::decode(&request) {
            prop_assert_eq!(encode(&decoded).len(), request.len());
        }
        let result: Vec<_> = data.iter().copied().map(FmqResultDatum::from_bytes).collect();
        if let Ok(decoded) = ResultPacket::decode(&result) {
            prop_assert_eq!(decoded.length(), result.len());
        }
    }

    #[test]
    fn burst_5_a_packet_with_a_datum_less_or_more_is_refused(
        request in request(),
        at in any::<prop::sample::Index>(),
        extra in raw(),
    ) {
        let data = encode(&request);
        let at = at.index(data.len());
        let refused = |mut data: Vec<FmqRequestDatum>| {
            let unchanged = RequestPacket::decode(&data).is_err();
            // And with a size that is right.
            if let Some(Ok(RequestDatum::PacketInformation { inputs, outputs, pools, .. })) =
                data.first().map(|datum| datum.decode())
            {
                let packet_size = u32::try_from(data.len()).unwrap();
                data[0] =
                    RequestDatum::PacketInformation { packet_size, inputs, outputs, pools }.into();
            }
            unchanged && RequestPacket::decode(&data).is_err()
        };
        let mut less = data.clone();
        less.remove(at);
        prop_assert!(refused(less));
        let mut more = data;
        more.insert(at, FmqRequestDatum::from_bytes(extra));
        prop_assert!(at == 0 || refused(more));
    }
}

/// One datum of each tag.
fn each_request_tag() -> [FmqRequestDatum; 7] {
    [
        RequestDatum::PacketInformation { packet_size: 0, inputs: 0, outputs: 0, pools: 0 },
        RequestDatum::Input(Default::default()),
        RequestDatum::InputDimension(0),
        RequestDatum::Output(Default::default()),
        RequestDatum::OutputDimension(0),
        RequestDatum::Pool(0),
        RequestDatum::MeasureTiming(0),
    ]
    .map(Into::into)
}

fn example() -> RequestPacket {
    let argument = |dimensions: &[u32]| RequestArgument {
        dimensions: dimensions.to_vec(),
        ..RequestArgument::default()
    };
    RequestPacket {
        inputs: vec![argument(&[1, 2]), argument(&[])],
        outputs: vec![argument(&[3])],
        slots: vec![4, 5],
        measure: true,
    }
}

#[test]
fn burst_5_every_wrong_tag_in_every_position_is_refused() {
    let data = encode(&example());
    for position in 0..data.len() {
        for wrong in each_request_tag() {
            if wrong.tag() == data[position].tag() {
                continue;
            }
            let mut changed = data.clone();
            changed[position] = wrong;
            let error = RequestPacket::decode(&changed).unwrap_err();
            assert_eq!(error.status(), ErrorStatus::GeneralFailure, "{position} {wrong:?}");
        }
    }
}

#[test]
fn burst_5_every_wrong_count_is_refused() {
    let data = encode(&example());
    let first = |packet_size, inputs, outputs, pools| {
        let mut changed = data.clone();
        changed[0] = RequestDatum::PacketInformation { packet_size, inputs, outputs, pools }.into();
        RequestPacket::decode(&changed)
    };
    let size = u32::try_from(data.len()).unwrap();
    assert!(first(size, 2, 1, 2).is_ok());
    for wrong in [0, 1, size - 1, size + 1, u32::MAX] {
        let error = PacketError::Size { claimed: wrong, received: data.len() };
        assert_eq!(first(wrong, 2, 1, 2), Err(error));
    }
    for wrong in [0, 1, 3, 4, u32::MAX] {
        assert!(first(size, wrong, 1, 2).is_err(), "{wrong} inputs");
        assert!(wrong == 1 || first(size, 2, wrong, 2).is_err(), "{wrong} outputs");
        assert!(first(size, 2, 1, wrong).is_err(), "{wrong} pools");
    }
}

/// Counts are compared with what was received: nothing as large as they are is allocated.
#[test]
fn burst_6_counts_beyond_what_was_received_are_refused_at_once() {
    let most = u32::MAX;
    let first = |inputs, outputs, pools| {
        RequestDatum::PacketInformation { packet_size: 3, inputs, outputs, pools }.into()
    };
    let [_, _, input, ..] = each_request_tag();
    for counts in [(most, 0, 0), (0, most, 0), (0, 0, most), (most, most, most), (2, 0, 0)] {
        let data = [first(counts.0, counts.1, counts.2), input, input];
        let error = RequestPacket::decode(&data).unwrap_err();
        assert!(matches!(error, PacketError::Counts { received: 3, .. }), "{error}");
    }
    let huge = nnhal_burst::datum::OperandInformation { dimensions: most, ..Default::default() };
    let data = [first(1, 0, 0), RequestDatum::Input(huge).into(), each_request_tag()[6]];
    let needed = 2 + u64::from(most);
    assert_eq!(RequestPacket::decode(&data), Err(PacketError::Counts { needed, received: 3 }));

    let first = ResultDatum::PacketInformation { packet_size: 2, status: 0, outputs: most };
    let data: [FmqResultDatum; 2] = [first.into(), first.into()];
    assert!(matches!(ResultPacket::decode(&data), Err(PacketError::Counts { .. })));
}

#[test]
fn gen_7_an_unknown_code_of_measure_timing_is_an_invalid_argument() {
    let mut data = encode(&example());
    *data.last_mut().unwrap() = RequestDatum::MeasureTiming(2).into();
    let error = RequestPacket::decode(&data).unwrap_err();
    assert_eq!(error, PacketError::MeasureTiming { found: 2 });
    assert_eq!(error.status(), ErrorStatus::InvalidArgument);
}

fn result_data(status: i32, shapes: &[OutputShape]) -> Vec<FmqResultDatum> {
    let mut data = Vec::new();
    let (output_shapes, timing) = (shapes.to_vec(), Timing::NONE);
    ResultPacket { status: ErrorStatus::None, output_shapes, timing }.encode(&mut data).unwrap();
    let packet_size = u32::try_from(data.len()).unwrap();
    let outputs = u32::try_from(shapes.len()).unwrap();
    data[0] = ResultDatum::PacketInformation { packet_size, status, outputs }.into();
    data
}

#[test]
fn gen_2_results_have_statuses_of_1_2_only() {
    for status in ErrorStatus::ALL.iter().filter(|status| status.code() > 4) {
        assert_eq!(ResultPacket::failed(*status).status, ErrorStatus::GeneralFailure);
    }
    for found in [-1, 5, 8, 9, i32::MAX] {
        let error = PacketError::Status { found };
        assert_eq!(ResultPacket::decode(&result_data(found, &[])), Err(error));
    }
}

#[test]
fn cb_7_shapes_that_contradict_the_status_are_refused() {
    let shape = |is_sufficient| OutputShape { dimensions: vec![2], is_sufficient };
    let decode = |status: ErrorStatus, shapes: &[OutputShape]| {
        ResultPacket::decode(&result_data(status.code(), shapes))
    };
    assert!(decode(ErrorStatus::None, &[shape(true)]).is_ok());
    assert!(decode(ErrorStatus::None, &[]).is_ok());
    assert!(decode(ErrorStatus::None, &[shape(true), shape(false)]).is_err());
    assert!(decode(ErrorStatus::OutputInsufficientSize, &[shape(false)]).is_ok());
    assert!(decode(ErrorStatus::OutputInsufficientSize, &[]).is_err());
    assert!(decode(ErrorStatus::GeneralFailure, &[shape(true)]).is_err());
}

#[test]
fn time_1_times_of_a_failed_execution_are_dropped() {
    let mut data = result_data(ErrorStatus::GeneralFailure.code(), &[]);
    data[1] = ResultDatum::Timing { time_on_device: 1, time_in_driver: 2 }.into();
    assert_eq!(ResultPacket::decode(&data).unwrap().timing, Timing::NONE);
}

//! Bursts (contract: section 11).

use super::models::{adder, sum, sum_request};
use super::{Check, Run, Verdict, Violation, demand, demand_refusal};
use nnhal_hal::ErrorStatus::InvalidArgument;
use nnhal_hal::{
    Burst, Device, HalVersion, PreparedModel, Request, RequestBuilder, RequestMemoryPool,
};
use std::sync::Arc;

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["BURST-1", "BURST-15", "BURST-17"],
        name: "a burst gives what an execution gives, again and again",
        run: Run::Device(same_results),
    },
    Check {
        ids: &["BURST-11"],
        name: "a wrong request is refused and the burst goes on",
        run: Run::Device(refusals),
    },
    Check {
        ids: &["BURST-9", "BURST-10"],
        name: "memory may be let go of and come again",
        run: Run::Device(free_memory),
    },
    Check {
        ids: &["BURST-16"],
        name: "a burst outlives its prepared model",
        run: Run::Device(lifetime),
    },
];

/// A burst, and the prepared model it is of; `None` where there are none.
type Opened = Option<(Box<dyn Burst>, Arc<dyn PreparedModel>)>;

fn open(device: &dyn Device) -> Result<Opened, Violation> {
    if device.version() < HalVersion::V1_2 {
        return Ok(None);
    }
    let prepared = adder(device)?;
    Ok(Some((prepared.configure_burst()?, prepared)))
}

fn not_offered() -> Verdict {
    Verdict::NotOffered("bursts, which are of 1.2".into())
}

fn expect_sum(burst: &dyn Burst, request: &Request) -> Result<(), Violation> {
    burst.execute(request, false)?;
    let found = RequestBuilder::read_output(request, 0)?;
    demand!(found == sum(), "the sum is {found:?}");
    Ok(())
}

fn same_results(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let Some((burst, prepared)) = open(&**device)? else { return Ok(not_offered()) };
    let request = sum_request()?;
    let direct = prepared.execute(&request, &nnhal_hal::ExecutionOptions::default())?;
    for _ in 0..20 {
        expect_sum(&*burst, &sum_request()?)?;
        let shapes = burst.execute(&request, false)?.output_shapes;
        demand!(shapes == direct.output_shapes, "shapes {shapes:?}, {:?}", direct.output_shapes);
    }
    let timing = burst.execute(&request, false)?.timing;
    demand!(timing == nnhal_hal::Timing::NONE, "{timing:?} was not asked for");
    Ok(Verdict::Kept)
}

fn refusals(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let Some((burst, _)) = open(&**device)? else { return Ok(not_offered()) };
    let mut wrong = sum_request()?;
    wrong.inputs.pop();
    let result = burst.execute(&wrong, false).map_err(|failed| failed.error);
    demand_refusal("an input less", result, &[InvalidArgument])?;
    expect_sum(&*burst, &sum_request()?)?;
    Ok(Verdict::Kept)
}

fn free_memory(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let Some((burst, _)) = open(&**device)? else { return Ok(not_offered()) };
    let request = sum_request()?;
    for _ in 0..3 {
        expect_sum(&*burst, &request)?;
        if let RequestMemoryPool::Memory(memory) = &request.pools[0] {
            burst.free_memory(memory);
            burst.free_memory(memory);
        }
    }
    Ok(Verdict::Kept)
}

fn lifetime(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let Some((burst, prepared)) = open(&**device)? else { return Ok(not_offered()) };
    drop(prepared);
    expect_sum(&*burst, &sum_request()?)?;
    Ok(Verdict::Kept)
}

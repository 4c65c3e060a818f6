//! Compiles the bedtimes of profiles.

use std::collections::BTreeMap;

use shepherd_core::policy::{BedtimeNights, BedtimePolicy};
use shepherd_util::ProfileId;

use super::names::{DefinedNames, NameKind};
use crate::raw::{NightSetting, RawBedtime, RawBedtimeNights, RawProfile};

pub(super) fn compile_bedtimes(
    raw: &[RawProfile],
    names: &DefinedNames<'_>,
) -> Option<BTreeMap<ProfileId, BedtimePolicy>> {
    let bedtimes = raw.iter().filter_map(|profile| Some((profile, profile.bedtime.as_ref()?)));
    bedtimes
        .map(|(profile, bedtime)| Some((profile.id.value.parse().ok()?, compile_bedtime(bedtime, names))))
        .collect()
}

fn compile_bedtime(raw: &RawBedtime, names: &DefinedNames<'_>) -> BedtimePolicy {
    let nights = compile_nights(&raw.nights, BedtimeNights::default());
    let by_mode = raw.by_mode.iter().map(|(mode, in_mode)| {
        names.look_up(NameKind::Mode, mode);
        (mode.value.clone(), compile_nights(in_mode, nights))
    });
    BedtimePolicy { nights, by_mode: by_mode.collect() }
}

/// Compiles the nights of a week. Nights that aren't set are those of `base`.
fn compile_nights(raw: &RawBedtimeNights, base: BedtimeNights) -> BedtimeNights {
    BedtimeNights {
        school_nights: raw.school_nights.map_or(base.school_nights, NightSetting::hours),
        weekends: raw.weekends.map_or(base.weekends, NightSetting::hours),
    }
}

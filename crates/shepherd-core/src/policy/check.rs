//! Checks that every reference in a policy resolves.

use shepherd_api::EntryKind;
use shepherd_util::{BudgetId, EntryId, ProfileId};

use super::{AvailabilityPolicy, ModeName, Policy, PolicyEntry};

/// The reason why rules are not a valid policy. `shepherd-config` finds these faults first, with their place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("entry `{0}` is defined twice")]
    DuplicateEntry(EntryId),
    #[error("there is no profile")]
    NoProfile,
    #[error("entry `{entry}` names budget `{budget}`, which does not exist")]
    UnknownBudget { entry: EntryId, budget: BudgetId },
    #[error("entry `{entry}` names profile `{profile}`, which does not exist")]
    UnknownProfile { entry: EntryId, profile: ProfileId },
    #[error("entry `{entry}` is unlocked by `{other}`, which does not exist")]
    UnknownEntry { entry: EntryId, other: EntryId },
    /// An earning rule would divide by zero.
    #[error("entry `{0}` earns time for zero minutes of use")]
    EarnsForNothing(EntryId),
    #[error("entry `{entry}` shows library `{library}`, which does not exist")]
    UnknownLibrary { entry: EntryId, library: String },
    #[error("profile `{profile}` has two logins, `{first}` and `{second}`")]
    TwoLogins { profile: ProfileId, first: EntryId, second: EntryId },
    #[error("mode `{0}` is used, but the policy does not define it")]
    UnknownMode(ModeName),
    #[error("there is a bedtime for profile `{0}`, which does not exist")]
    UnknownBedtime(ProfileId),
    #[error("exception `{exception}` is for entry `{entry}`, which does not exist")]
    UnknownException { exception: String, entry: EntryId },
}

impl Policy {
    pub(super) fn check_references(&self) -> Result<(), PolicyError> {
        self.rules.entries.iter().try_for_each(|entry| self.check_entry(entry))?;
        self.check_logins()?;
        self.check_exceptions()?;
        let unknown = |profile: &&ProfileId| !self.rules.profiles.contains_key(*profile);
        if let Some(profile) = self.rules.bedtimes.keys().find(unknown) {
            return Err(PolicyError::UnknownBedtime(profile.clone()));
        }
        self.check_modes()
    }

    fn check_entry(&self, entry: &PolicyEntry) -> Result<(), PolicyError> {
        let of = || entry.entry_id.clone();
        let earned = entry.earns.iter().map(|earning| &earning.budget);
        for budget in entry.budgets.iter().chain(earned) {
            if !self.rules.budgets.contains_key(budget) {
                return Err(PolicyError::UnknownBudget { entry: of(), budget: budget.clone() });
            }
        }
        for profile in entry.profiles.iter().flatten() {
            if !self.rules.profiles.contains_key(profile) {
                return Err(PolicyError::UnknownProfile { entry: of(), profile: profile.clone() });
            }
        }
        if let Some(unlock) = &entry.unlock
            && !self.index.contains_key(&unlock.entry_id)
        {
            return Err(PolicyError::UnknownEntry { entry: of(), other: unlock.entry_id.clone() });
        }
        if entry.earns.as_ref().is_some_and(|earning| earning.for_each.is_zero()) {
            return Err(PolicyError::EarnsForNothing(of()));
        }
        match &entry.kind {
            EntryKind::Media { library_id, .. } if !self.rules.libraries.contains_key(library_id) => {
                Err(PolicyError::UnknownLibrary { entry: of(), library: library_id.clone() })
            }
            EntryKind::Process { .. }
            | EntryKind::Vm { .. }
            | EntryKind::Media { .. }
            | EntryKind::Custom { .. } => Ok(()),
        }
    }

    fn check_logins(&self) -> Result<(), PolicyError> {
        for profile in self.rules.profiles.keys() {
            let mut logins = self.login_entries().filter(|entry| entry.is_for(profile));
            if let (Some(first), Some(second)) = (logins.next(), logins.next()) {
                return Err(PolicyError::TwoLogins {
                    profile: profile.clone(),
                    first: first.entry_id.clone(),
                    second: second.entry_id.clone(),
                });
            }
        }
        Ok(())
    }

    fn check_exceptions(&self) -> Result<(), PolicyError> {
        for exception in &self.rules.exceptions {
            let unknown = |entry: &&EntryId| !self.index.contains_key(*entry);
            if let Some(entry) = exception.entries.iter().flatten().find(unknown) {
                let (exception, entry) = (exception.label.clone(), entry.clone());
                return Err(PolicyError::UnknownException { exception, entry });
            }
        }
        Ok(())
    }

    fn check_modes(&self) -> Result<(), PolicyError> {
        let (rules, modes) = (&self.rules, &self.rules.modes);
        let of_windows = rules.entries.iter().flat_map(|entry| match &entry.availability {
            AvailabilityPolicy::Always => &[],
            AvailabilityPolicy::Windows(windows) => windows.as_slice(),
        });
        let of_windows = of_windows.flat_map(|window| window.modes.iter().flatten());
        let of_entries = rules.entries.iter().flat_map(|entry| entry.limits.daily_quota.by_mode.keys());
        let of_budgets = rules.budgets.values().flat_map(|budget| budget.daily.by_mode.keys());
        let of_bedtimes = rules.bedtimes.values().flat_map(|bedtime| bedtime.by_mode.keys());
        let of_dates = modes.by_date.iter().map(|(_, _, mode)| mode);
        let of_profiles = of_budgets.chain(of_bedtimes);
        let mut used =
            of_windows.chain(of_entries).chain(of_profiles).chain(of_dates).chain([&modes.default]);
        // The default mode has no name.
        let unknown = |mode: &&ModeName| !mode.is_empty() && !modes.names.contains(*mode);
        used.find(unknown).map_or(Ok(()), |mode| Err(PolicyError::UnknownMode(mode.clone())))
    }
}

//! The list of all sentences with their variables. The name of a method is the name of the sentence in the catalogues.

use crate::catalogue::SentenceCatalogue;

macro_rules! sentences {
    ($($(#[$documentation:meta])* $name:ident($($variable:ident: $kind:ty),*);)*) => {
        impl SentenceCatalogue {
            $(
                $(#[$documentation])*
                #[must_use]
                pub fn $name(&self $(, $variable: $kind)*) -> String {
                    self.format(stringify!($name), &[$((stringify!($variable), $variable.into())),*])
                }
            )*
        }

        /// Every sentence with its variables.
        #[cfg(test)]
        pub(crate) const SENTENCES: &[(&str, &[&str])] =
            &[$((stringify!($name), &[$(stringify!($variable)),*])),*];
    };
}

sentences! {
    // Lengths of time; `duration` combines them.
    days(count: u64);
    hours(count: u64);
    minutes(count: u64);
    seconds(count: u64);
    less_than_a_second();
    less_than_a_minute();
    no_time();

    // Times; `time` chooses one.
    clock_time(clock: &str);
    time_tomorrow(clock: &str);
    time_yesterday(clock: &str);
    time_on_weekday(weekday: &str, clock: &str);
    time_on_date(year: &str, month: &str, day: &str, clock: &str);
    time_with_date(weekday: &str, year: &str, month: &str, day: &str, clock: &str);
    time_in_zone(time: &str, zone: &str);
    midnight();
    /// Names a weekday; 1 is Monday.
    weekday(number: u64);

    // Reasons; `reason` chooses one.
    reason_unknown_entry(entry: &str);
    reason_not_for_profile();
    reason_disabled();
    reason_disabled_because(why: &str);
    reason_host_cannot_run(kind: &str);
    reason_account_missing();
    reason_outside_hours(time: &str);
    reason_outside_hours_without_opening();
    reason_bedtime(time: &str);
    reason_bedtime_without_end();
    reason_login_entry();
    reason_login_not_found(login: &str);
    reason_session_active(entry: &str);
    reason_cooldown(time: &str);
    reason_break_needed(time: &str);
    reason_quota_daily(used: &str, limit: &str);
    reason_quota_weekly(used: &str, limit: &str);
    reason_budget_daily(budget: &str, used: &str, limit: &str);
    reason_budget_weekly(budget: &str, used: &str, limit: &str);
    reason_not_unlocked(needed: &str, entry: &str, done: &str);
    nothing_done();
    reason_clock_untrusted(time: &str);
    reason_store_unavailable(detail: &str);
    reason_unknown();

    // Log-ins; `login_refusal` puts them together.
    login_closed();
    login_needs_break();
    login_used_up_today();
    login_used_up_this_week();
    login_not_recorded();
    login_not_seen();
    computer_opens_today(clock: &str);
    computer_opens_tomorrow(clock: &str);
    computer_opens_on_weekday(number: u64, clock: &str);
    computer_opens_on_date(day: &str, month_number: u64, clock: &str);

    // An entry that extra time doesn't open; `closed_entry` puts the words together.
    closed_hours();
    closed_hours_until(time: &str);
    closed_bedtime();
    closed_bedtime_until(time: &str);
    /// Says what has to be done first. The number is 1 if the verb is singular.
    until_done(number: u64, needed: &str, entry: &str);
    closed_lock(lock: &str);
    closed_twice(hours: &str, lock: &str);
    stays(closed: &str);

    // Warnings and the end of a session.
    ends_in(label: &str, remaining: &str);
    more_time_title(label: &str);
    less_time_title(label: &str);
    no_limit_now(label: &str);
    closing_title(label: &str);
    closing_body(reason: &str);
    ended_title(label: &str);
    end_expired();
    end_stopped_by_parent();
    end_shepherd_stops();
    end_not_started();

    // The tray.
    session_line(label: &str, remaining: &str);
    session_line_without_limit(label: &str);

    // A child's request for time.
    ask_button(minutes: u32);
    asked_title();
    asked_body(amount: &str, label: &str);
    granted_title();
    granted_body(label: &str);
    granted_but_ends(remaining: &str);
    granted_but_stays(closed: &str);
    denied_title();
    denied_body(label: &str);
    lapsed_title();
    lapsed_body(amount: &str, label: &str);
    /// Puts a person's own words into quotation marks.
    quoted(text: &str);

    // A child's request, as a parent sees it.
    request_title(child: &str, amount: &str);
    yes_button(amount: &str);
    no_button();
    still_ends_title(label: &str, remaining: &str);
    still_ends_body();
    go_on_button(amount: &str);
    stays_closed_title(label: &str);
    stays_closed_body(closed: &str);
    open_until_button(time: &str);

    // Entries and sessions in lists.
    phase_launching();
    phase_running();
    phase_warned();
    phase_expiring();
    session_in_background();
    session_logged_in();
    session_idle();
    session_stands_still();
    nothing_running();
    countdown_left(countdown: &str);
    since_until(start: &str, end: &str);
    since_without_limit(start: &str);
    run_up_to(amount: &str);
    no_time_limit();
    left_today(amount: &str);
    after_session(entry: &str);
    available_from(time: &str);
    more_reasons(count: u64);
    grant_extra(amount: &str, giver: &str, time: &str);
    grant_open(giver: &str, time: &str);
    /// Names a parent whose account is unknown, for `grant_extra` and `grant_open`.
    an_administrator();
    entry_count(count: u64);
    household_mode(mode: &str);
    clock_set_back();
    clock_set_back_help();
    list_heading(child: &str, time: &str);
    no_entries_for_child();
    no_entries();
    why_heading(label: &str, child: &str, time: &str, answer: &str);
    entry_available(terms: &str);
    entry_unavailable();
    entry_unavailable_until(time: &str);
    limit_at_most(amount: &str);
    limit_until(time: &str);

    // A button that failed.
    button_failed(button: &str, reason: &str);
    unreachable();
    error_not_permitted();
    error_pin_required();
    error_rate_limited();
    error_already_decided();
    error_over_ceiling();
    error_store_unavailable();
    error_not_running();
    error_unknown_entry();
}

#[cfg(test)]
mod tests;

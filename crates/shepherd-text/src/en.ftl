# What Shepherd says to a family, in English. `de.ftl` says the same in German.
#
# The sentences to a child are plain and short. A time comes as `15:00`, `tomorrow 15:00` or `Sat 15:00`, and a length of
# time in words, such as `5 minutes`. `sentences.rs` lists the sentences with their variables.

## Lengths of time

days = { $count ->
    [one] { $count } day
   *[other] { $count } days
}
hours = { $count ->
    [one] { $count } hour
   *[other] { $count } hours
}
minutes = { $count ->
    [one] { $count } minute
   *[other] { $count } minutes
}
seconds = { $count ->
    [one] { $count } second
   *[other] { $count } seconds
}
less_than_a_second = less than a second
less_than_a_minute = less than 1 minute
no_time = no time

## Times

clock_time = { $clock }
time_tomorrow = tomorrow { $clock }
time_yesterday = yesterday { $clock }
time_on_weekday = { $weekday } { $clock }
time_on_date = { $year }-{ $month }-{ $day } { $clock }
time_with_date = { $weekday } { $year }-{ $month }-{ $day } { $clock }
time_in_zone = { $time } ({ $zone })
midnight = midnight
# 1 is Monday.
weekday = { $number ->
    [1] Mon
    [2] Tue
    [3] Wed
    [4] Thu
    [5] Fri
    [6] Sat
   *[7] Sun
}

## Reasons for which something can't be started, by reason code

reason_unknown_entry = There is no entry `{ $entry }`.
reason_not_for_profile = Not available for this profile.
reason_disabled = Switched off.
reason_disabled_because = Switched off: { $why }
reason_host_cannot_run = This machine can't run entries of kind `{ $kind }`.
reason_account_missing = The rules name no child's login for this, and Shepherd starts nothing as root. A parent fills in the login in the policy, in `accounts` of the profile or in `user` of the entry, and then runs `sudo shepherd reload`.
reason_outside_hours = Not allowed at this time. Opens { $time }.
reason_outside_hours_without_opening = Not allowed at this time.
reason_bedtime = Bedtime until { $time }.
reason_bedtime_without_end = It is bedtime.
reason_login_entry = This isn't a program: it begins when the child logs in to the computer.
reason_login_not_found = The login `{ $login }` doesn't exist on this computer. A parent creates it with `sudo adduser { $login }`, or corrects the name in the policy and then runs `sudo shepherd reload`.
reason_session_active = { $entry } is running. Each child can run one program at a time.
reason_cooldown = Needs a pause after the last run, until { $time }.
reason_break_needed = Time for a break, until { $time }.
reason_quota_daily = The time for today is used up: { $used } of { $limit }.
reason_quota_weekly = The time for this week is used up: { $used } of { $limit }.
reason_budget_daily = Today's time for { $budget } is used up: { $used } of { $limit }.
reason_budget_weekly = This week's time for { $budget } is used up: { $used } of { $limit }.
reason_not_unlocked = Do { $needed } of { $entry } first ({ $done } so far).
nothing_done = 0
reason_clock_untrusted = The clock seems to be wrong: it has already shown { $time }. A parent can correct the clock or, if it is right, run `shepherd clock confirm`.
reason_store_unavailable = Nothing can be launched while usage can't be recorded: { $detail }
reason_unknown = Not available, for a reason that this version of the program doesn't know.

## Log-ins

login_closed = Not at this time.
login_needs_break = Time for a break.
login_used_up_today = The time for today is used up.
login_used_up_this_week = The time for this week is used up.
login_not_recorded = Not now, because used time can't be recorded. Ask a parent.
login_not_seen = Not now, because this computer doesn't tell Shepherd who is logged in. Ask a parent.
computer_opens_today = The computer opens at { $clock }.
computer_opens_tomorrow = The computer opens tomorrow at { $clock }.
# 1 is Monday.
computer_opens_on_weekday = The computer opens on { $number ->
    [1] Monday
    [2] Tuesday
    [3] Wednesday
    [4] Thursday
    [5] Friday
    [6] Saturday
   *[7] Sunday
} at { $clock }.
computer_opens_on_date = The computer opens on { $day } { $month_number ->
    [1] January
    [2] February
    [3] March
    [4] April
    [5] May
    [6] June
    [7] July
    [8] August
    [9] September
    [10] October
    [11] November
   *[12] December
} at { $clock }.

## An entry that extra time doesn't open

closed_hours = closed, because of its hours
closed_hours_until = closed until { $time }, because of its hours
closed_bedtime = closed, because it is bedtime
closed_bedtime_until = closed until { $time }, because it is bedtime
until_done = until { $needed } of { $entry } { $number ->
    [one] is
   *[other] are
} done
closed_lock = closed { $lock }
closed_twice = { $hours }, and { $lock }
stays = It stays { $closed }.

## Warnings and the end of a session

ends_in = { $label } ends in { $remaining }.
more_time_title = More time for { $label }
less_time_title = Less time for { $label }
no_limit_now = { $label } has no time limit now.
closing_title = { $label } is closing
closing_body = { $reason } Save now.
ended_title = { $label } has ended
end_expired = The time is up.
end_stopped_by_parent = A parent has stopped it.
end_shepherd_stops = Shepherd is being stopped.
end_not_started = It could not be started.

## The tray

session_line = { $label }: { $remaining } left
session_line_without_limit = { $label }: no time limit

## A child's request for time

ask_button = { $minutes ->
    [one] Ask for { $minutes } more minute
   *[other] Ask for { $minutes } more minutes
}
asked_title = Asked
asked_body = You asked for { $amount } of { $label }.
granted_title = Yes
granted_body = You get more time for { $label }.
granted_but_ends = But it still ends in { $remaining }, because its hours end then.
granted_but_stays = But it stays { $closed }.
denied_title = Not this time
denied_body = No more time for { $label }.
lapsed_title = No answer
lapsed_body = Nobody answered when you asked for { $amount } of { $label }.
quoted = “{ $text }”

## A child's request, as a parent sees it

request_title = { $child } asks for { $amount }
yes_button = Yes, { $amount }
no_button = No
still_ends_title = { $label } still ends in { $remaining }
still_ends_body = Its hours end then, and extra time doesn't move them.
go_on_button = Let it go on for { $amount }
stays_closed_title = { $label } stays closed
stays_closed_body = It is { $closed }. Extra time doesn't open it.
open_until_button = Open it until { $time }

## Entries and sessions in lists

phase_launching = starting
phase_running = running
phase_warned = running, warned
phase_expiring = stopping
session_in_background = in the background
session_logged_in = logged in
session_idle = idle
session_stands_still = its time doesn't count now
nothing_running = Nothing is running.
countdown_left = { $countdown } left
since_until = since { $start }, until { $end }
since_without_limit = since { $start }, with no time limit
run_up_to = up to { $amount }
no_time_limit = no time limit
left_today = { $amount } left today
after_session = when { $entry } has ended
available_from = Available { $time }.
more_reasons = { $count ->
    [one] (and { $count } more reason)
   *[other] (and { $count } more reasons)
}
grant_extra = +{ $amount } from { $giver } until { $time }
grant_open = opened by { $giver } until { $time }
an_administrator = an administrator
entry_count = { $count ->
    [one] { $count } entry
   *[other] { $count } entries
}
household_mode = mode { $mode }
clock_set_back = The clock was set back, so nothing can be launched.
clock_set_back_help = Correct the clock or, if it is right, run `shepherd clock confirm`.
list_heading = For { $child } on { $time }, counting the time used so far:
no_entries_for_child = There are no entries for this child.
no_entries = The policy has no entries. `shepherd policy init FILE` writes a policy with examples.
why_heading = { $label } for { $child } on { $time }: { $answer }
entry_available = available, { $terms }
entry_unavailable = not available
entry_unavailable_until = not available until { $time }
limit_at_most = at most { $amount }
limit_until = until { $time }

## A button that failed

button_failed = Could not do this: { $button }. { $reason }
unreachable = Shepherd can't be reached. Try again later.
error_not_permitted = You may not do this.
error_pin_required = This needs the PIN. Use `shepherd watch`.
error_rate_limited = That was too often. Wait a moment and try again.
error_already_decided = This was already answered.
error_over_ceiling = The rules don't allow that much.
error_store_unavailable = Shepherd can't write anything down at the moment, so it gives no time.
error_not_running = Nothing is running any more.
error_unknown_entry = This is no longer in the rules.

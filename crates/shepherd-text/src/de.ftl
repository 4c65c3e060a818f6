# Was Shepherd einer Familie sagt, auf Deutsch. `en.ftl` sagt dasselbe auf Englisch.
#
# Die Sätze an ein Kind sagen du, sind kurz und so, wie Eltern sprechen. Eine Uhrzeit kommt als `15:00 Uhr`,
# `morgen, 15:00 Uhr` oder `Samstag, 15:00 Uhr` und passt hinter `ab` und `bis`. Eine Dauer steht im ersten oder vierten
# Fall (`2 Tage`), also nicht hinter `in`, `nach` oder `von`. `sentences.rs` nennt die Sätze mit ihren Variablen.

## Dauer

days = { $count ->
    [one] { $count } Tag
   *[other] { $count } Tage
}
hours = { $count ->
    [one] { $count } Stunde
   *[other] { $count } Stunden
}
minutes = { $count ->
    [one] { $count } Minute
   *[other] { $count } Minuten
}
seconds = { $count ->
    [one] { $count } Sekunde
   *[other] { $count } Sekunden
}
less_than_a_second = weniger als eine Sekunde
less_than_a_minute = weniger als 1 Minute
no_time = keine Zeit

## Uhrzeit

clock_time = { $clock } Uhr
time_tomorrow = morgen, { $clock } Uhr
time_yesterday = gestern, { $clock } Uhr
time_on_weekday = { $weekday }, { $clock } Uhr
time_on_date = { $day }.{ $month }.{ $year }, { $clock } Uhr
time_with_date = { $weekday }, { $day }.{ $month }.{ $year }, { $clock } Uhr
time_in_zone = { $time } ({ $zone })
midnight = Mitternacht
# 1 ist Montag.
weekday = { $number ->
    [1] Montag
    [2] Dienstag
    [3] Mittwoch
    [4] Donnerstag
    [5] Freitag
    [6] Samstag
   *[7] Sonntag
}

## Gründe, aus denen etwas nicht geht

reason_unknown_entry = „{ $entry }“ gibt es nicht.
reason_not_for_profile = Das ist nicht für dich freigegeben.
reason_disabled = Ausgeschaltet.
reason_disabled_because = Ausgeschaltet: { $why }
reason_host_cannot_run = Das läuft auf diesem Computer nicht (Art: `{ $kind }`).
reason_account_missing = In den Regeln fehlt, mit welchem Benutzerkonto das laufen soll, und Shepherd startet nichts als root. Deine Eltern tragen das Konto ein, bei `accounts` im Profil oder bei `user` im Eintrag, und geben dann `sudo shepherd reload` ein.
reason_outside_hours = Jetzt nicht. Wieder ab { $time }.
reason_outside_hours_without_opening = Jetzt nicht.
reason_bedtime = Schlafenszeit bis { $time }.
reason_bedtime_without_end = Es ist Schlafenszeit.
reason_login_entry = Das ist kein Programm: Es beginnt, wenn sich das Kind am Computer anmeldet.
reason_login_not_found = Das Benutzerkonto `{ $login }` gibt es auf diesem Computer nicht. Deine Eltern legen es mit `sudo adduser { $login }` an, oder sie berichtigen den Namen in den Regeln und geben dann `sudo shepherd reload` ein.
reason_session_active = { $entry } läuft gerade. Es geht immer nur eins auf einmal.
reason_cooldown = Nach dem letzten Mal ist Pause bis { $time }.
reason_break_needed = Zeit für eine Pause, bis { $time }.
reason_quota_daily = Deine Zeit für heute ist um (verbraucht: { $used }, erlaubt: { $limit }).
reason_quota_weekly = Deine Zeit für diese Woche ist um (verbraucht: { $used }, erlaubt: { $limit }).
reason_budget_daily = Deine Zeit für { $budget } ist für heute um (verbraucht: { $used }, erlaubt: { $limit }).
reason_budget_weekly = Deine Zeit für { $budget } ist für diese Woche um (verbraucht: { $used }, erlaubt: { $limit }).
reason_not_unlocked = Mach zuerst { $needed } { $entry } (bisher { $done }).
nothing_done = noch nichts
reason_clock_untrusted = Die Uhr geht wohl falsch: Sie hat schon { $time } angezeigt. Deine Eltern können sie richtig stellen oder, wenn sie stimmt, `shepherd clock confirm` eingeben.
reason_store_unavailable = Shepherd kann gerade nicht aufschreiben, wie viel Zeit du verbrauchst. Deshalb startet nichts: { $detail }
reason_unknown = Das geht gerade nicht. Den Grund kennt diese Version des Programms nicht.

## Anmeldung

login_closed = Jetzt nicht.
login_needs_break = Zeit für eine Pause.
login_used_up_today = Deine Zeit für heute ist um.
login_used_up_this_week = Deine Zeit für diese Woche ist um.
login_not_recorded = Jetzt nicht, weil Shepherd gerade nicht aufschreiben kann, wie lange du am Computer bist. Frag deine Eltern.
login_not_seen = Jetzt nicht, weil dieser Computer Shepherd nicht sagt, wer angemeldet ist. Frag deine Eltern.
computer_opens_today = Du darfst ab { $clock } Uhr an den Computer.
computer_opens_tomorrow = Du darfst morgen ab { $clock } Uhr an den Computer.
# 1 ist Montag.
computer_opens_on_weekday = Du darfst am { $number ->
    [1] Montag
    [2] Dienstag
    [3] Mittwoch
    [4] Donnerstag
    [5] Freitag
    [6] Samstag
   *[7] Sonntag
} ab { $clock } Uhr an den Computer.
computer_opens_on_date = Du darfst am { $day }. { $month_number ->
    [1] Januar
    [2] Februar
    [3] März
    [4] April
    [5] Mai
    [6] Juni
    [7] Juli
    [8] August
    [9] September
    [10] Oktober
    [11] November
   *[12] Dezember
} ab { $clock } Uhr an den Computer.

## Was auch mit mehr Zeit zu bleibt

closed_hours = zu, weil es um diese Zeit nicht erlaubt ist
closed_hours_until = zu bis { $time }, weil es vorher nicht erlaubt ist
closed_bedtime = zu, weil Schlafenszeit ist
closed_bedtime_until = zu bis { $time }, weil Schlafenszeit ist
until_done = bis { $needed } { $entry } geschafft { $number ->
    [one] ist
   *[other] sind
}
closed_lock = zu, { $lock }
closed_twice = { $hours }, und { $lock }
stays = Es bleibt { $closed }.

## Warnungen und das Ende

ends_in = Noch { $remaining } { $label }.
more_time_title = Mehr Zeit für { $label }
less_time_title = Weniger Zeit für { $label }
no_limit_now = { $label } hat jetzt kein Zeitlimit.
closing_title = { $label } wird beendet
closing_body = { $reason } Speichere jetzt!
ended_title = { $label } ist zu Ende
end_expired = Die Zeit ist um.
end_stopped_by_parent = Deine Eltern haben es beendet.
end_shepherd_stops = Shepherd wird gerade beendet.
end_not_started = Es ließ sich nicht starten.

## Die Leiste mit den Symbolen

session_line = { $label }: noch { $remaining }
session_line_without_limit = { $label }: ohne Zeitlimit

## Ein Kind bittet um Zeit

ask_button = { $minutes ->
    [one] Um { $minutes } Minute mehr bitten
   *[other] Um { $minutes } Minuten mehr bitten
}
asked_title = Gefragt
asked_body = Du hast um { $amount } { $label } gebeten.
granted_title = Ja
granted_body = Du bekommst mehr Zeit für { $label }.
granted_but_ends = Aber es bleiben nur { $remaining }, weil dann die erlaubten Stunden vorbei sind.
granted_but_stays = Aber es bleibt { $closed }.
denied_title = Diesmal nicht
denied_body = Keine zusätzliche Zeit für { $label }.
lapsed_title = Keine Antwort
lapsed_body = Niemand hat geantwortet, als du um { $amount } { $label } gebeten hast.
quoted = „{ $text }“

## Die Bitte eines Kindes, wie Eltern sie sehen

request_title = { $child } bittet um { $amount }
yes_button = Ja, { $amount }
no_button = Nein
still_ends_title = { $label }: trotzdem nur noch { $remaining }
still_ends_body = Dann sind die erlaubten Stunden vorbei, und mehr Zeit ändert daran nichts.
go_on_button = Noch { $amount } weiterlaufen lassen
stays_closed_title = { $label } bleibt zu
stays_closed_body = Es ist { $closed }. Mehr Zeit ändert daran nichts.
open_until_button = Öffnen bis { $time }

## Einträge und Laufendes in Listen

phase_launching = startet
phase_running = läuft
phase_warned = läuft, bald ist Schluss
phase_expiring = wird beendet
session_in_background = im Hintergrund
session_logged_in = angemeldet
session_idle = inaktiv
session_stands_still = die Zeit zählt gerade nicht
nothing_running = Gerade läuft nichts.
countdown_left = noch { $countdown }
since_until = seit { $start }, bis { $end }
since_without_limit = seit { $start }, ohne Zeitlimit
run_up_to = höchstens { $amount }
no_time_limit = ohne Zeitlimit
left_today = heute noch { $amount }
after_session = wenn { $entry } zu Ende ist
available_from = Wieder ab { $time }.
more_reasons = { $count ->
    [one] (und { $count } weiterer Grund)
   *[other] (und { $count } weitere Gründe)
}
grant_extra = +{ $amount } von { $giver } bis { $time }
grant_open = geöffnet von { $giver } bis { $time }
an_administrator = den Eltern
entry_count = { $count ->
    [one] { $count } Eintrag
   *[other] { $count } Einträge
}
household_mode = Modus { $mode }
clock_set_back = Die Uhr wurde zurückgestellt, deshalb startet nichts.
clock_set_back_help = Stellt die Uhr richtig oder gebt, wenn sie stimmt, `shepherd clock confirm` ein.
list_heading = Für { $child }, { $time }, mit der bisher verbrauchten Zeit:
no_entries_for_child = Für dieses Kind gibt es keine Einträge.
no_entries = In den Regeln stehen keine Einträge. `shepherd policy init DATEI` schreibt Regeln mit Beispielen.
why_heading = { $label } für { $child }, { $time }: { $answer }
entry_available = geht, { $terms }
entry_unavailable = geht nicht
entry_unavailable_until = geht nicht bis { $time }
limit_at_most = höchstens { $amount }
limit_until = bis { $time }

## Ein Knopf, der nichts bewirkt hat

button_failed = Das hat nicht geklappt: { $button }. { $reason }
unreachable = Shepherd ist gerade nicht erreichbar. Versuch es später noch einmal.
error_not_permitted = Das darfst du nicht.
error_pin_required = Dafür braucht man die PIN. Das geht mit `shepherd watch`.
error_rate_limited = Das war zu oft. Warte einen Moment und versuch es noch einmal.
error_already_decided = Das ist schon beantwortet.
error_over_ceiling = So viel erlauben die Regeln nicht.
error_store_unavailable = Shepherd kann gerade nichts aufschreiben und gibt deshalb keine Zeit.
error_not_running = Es läuft nichts mehr.
error_unknown_entry = Das steht nicht mehr in den Regeln.

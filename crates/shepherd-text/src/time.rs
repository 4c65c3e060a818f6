//! Times in words.

use jiff::{Timestamp, Zoned};

use crate::catalogue::SentenceCatalogue;

impl SentenceCatalogue {
    /// Describes a time in the zone of `now`, as short as possible seen from then: `15:00`, `tomorrow 15:00`,
    /// `Sat 15:00`, or with the date.
    #[must_use]
    pub fn time(&self, at: Timestamp, now: &Zoned) -> String {
        let then = at.to_zoned(now.time_zone().clone());
        let clock = clock_of(&then);
        match (then.date() - now.date()).get_days() {
            0 => self.clock_time(&clock),
            1 => self.time_tomorrow(&clock),
            -1 => self.time_yesterday(&clock),
            -6..=6 => self.time_on_weekday_of(&then),
            _ => {
                let [year, month, day] = date_of(&then);
                self.time_on_date(&year, &month, &day, &clock)
            }
        }
    }

    /// Describes a time in its own zone with weekday and date, for headings.
    #[must_use]
    pub fn full_time(&self, then: &Zoned) -> String {
        let [year, month, day] = date_of(then);
        self.time_with_date(&self.weekday_of(then), &year, &month, &day, &clock_of(then))
    }

    /// Describes a time in its own zone by its weekday, such as `Sat 15:00`.
    #[must_use]
    pub fn time_on_weekday_of(&self, then: &Zoned) -> String {
        self.time_on_weekday(&self.weekday_of(then), &clock_of(then))
    }

    fn weekday_of(&self, then: &Zoned) -> String {
        self.weekday(then.weekday().to_monday_one_offset().unsigned_abs().into())
    }
}

fn date_of(then: &Zoned) -> [String; 3] {
    ["%Y", "%m", "%d"].map(|format| then.strftime(format).to_string())
}

fn clock_of(then: &Zoned) -> String {
    then.strftime("%H:%M").to_string()
}

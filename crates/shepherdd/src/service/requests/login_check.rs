//! Answers whether an account may log in now (S19.2). PAM asks before the log-in.

use shepherd_api::{ApiError, AuditKind, ClientRole, CommandReply, ErrorCode, LoginAnswer};
use shepherd_text::SentenceCatalogue;

use super::{ReplyResult, RequestContext};
use crate::service::DaemonService;
use crate::service::refusals::RefusalDisposition;

impl DaemonService {
    pub(super) fn check_login(
        &mut self,
        request: &RequestContext,
        uid: u32,
        gid: Option<u32>,
    ) -> ReplyResult {
        let client = &request.client;
        if client.role != ClientRole::Admin && client.peer.uid != uid {
            let code = client.refusal_code(ClientRole::Admin);
            let sentence = "Only an administrator and the account itself may ask this.";
            return Err(ApiError::new(code, sentence));
        }
        if self.policy.source.is_none() {
            let sentence = "There are no rules in force, so nobody knows who may log in.";
            return Err(ApiError::new(ErrorCode::PolicyRejected, sentence));
        }
        let login = self.login_answer(uid, gid, request);
        Ok(CommandReply::LoginChecked { login })
    }

    fn login_answer(&mut self, uid: u32, gid: Option<u32>, request: &RequestContext) -> LoginAnswer {
        let Some(profile) = self.limited_profile(uid, gid) else { return LoginAnswer::Unlimited };
        let Some(check) = self.engine.check_login(&profile, &uid.to_string(), request.now) else {
            return LoginAnswer::Unlimited;
        };
        let entry_id = check.entry_id;
        if check.reasons.is_empty() {
            return LoginAnswer::Allowed { profile, entry_id };
        }
        let policy = self.engine.policy();
        let label_of = |item: shepherd_api::PolicyItem<'_>| policy.label_of(item).map(str::to_owned);
        let now = request.now.wall.to_zoned(self.engine.zone().clone());
        let catalogue = SentenceCatalogue::of(policy.rules().language);
        let sentence = catalogue.login_refusal(&check.reasons, check.opens, &now, label_of);
        if self.count_refusal(uid, request.now) == RefusalDisposition::Record {
            let (entry_id, profile, reasons) = (entry_id.clone(), profile.clone(), check.reasons.clone());
            let denied = AuditKind::LaunchDenied { entry_id, profile, reasons };
            self.append_audit(&request.actor(), denied, request.now);
        }
        LoginAnswer::Refused { profile, entry_id, reasons: check.reasons, opens: check.opens, sentence }
    }
}

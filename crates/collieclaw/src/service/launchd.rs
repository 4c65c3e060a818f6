//! The launchd property list of the service. Untested.

use std::path::Path;

use super::GatewayService;

pub(super) const LABEL: &str = "collieclaw.gateway";

pub(super) fn property_list(service: &GatewayService) -> String {
    let log = service.home.join("gateway.log");
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Written by `collieclaw service install`, and not tested. -->
<plist version="1.0">
<dict>
  <key>Label</key><string>{LABEL}</string>
  <key>ProgramArguments</key><array><string>{program}</string><string>gateway</string></array>
  <key>EnvironmentVariables</key><dict><key>COLLIECLAW_HOME</key><string>{home}</string></dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>Umask</key><integer>63</integer>
  <key>StandardErrorPath</key><string>{log}</string>
</dict>
</plist>
"#,
        program = escape_xml(&service.program),
        home = escape_xml(&service.home),
        log = escape_xml(&log),
    )
}

/// Escapes text for XML.
fn escape_xml(path: &Path) -> String {
    path.display().to_string().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

//! Chromium as a person uses it: a page is opened at two widths, light and dark, and what the
//! browser complains of or asks for is an error.
//!
//! Names are resolved to nothing, so that nothing leaves the machine even if a page wants it; what
//! it wants is in the log.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
const SECONDS_MAX: &str = "120";

/// The browser, if there is one.
pub(crate) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let found = NAMES.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
    found.into_iter().find(|program| program.is_file())
}

/// Opens a page in all ways, and leaves screenshots beside it.
pub(crate) fn check(browser: &Path, page: &Path) {
    let dom = String::from_utf8_lossy(&open(browser, page, &["--dump-dom"]).stdout).into_owned();
    // The script has run to its end.
    assert!(
        dom.contains("id=\"theme\"") && !dom.contains("id=\"theme\" hidden"),
        "{}",
        page.display()
    );
    for (width, height) in [(1280, 4000), (400, 6000)] {
        for theme in ["light", "dark"] {
            let shot = page.with_extension(format!("{width}-{theme}.png"));
            let _none = fs::remove_file(&shot);
            let size = format!("--window-size={width},{height}");
            let to = format!("--screenshot={}", shot.display());
            let dark = "--blink-settings=preferredColorScheme=0";
            let light = "--blink-settings=preferredColorScheme=1";
            let theme = if theme == "dark" { dark } else { light };
            let output = open(browser, page, &[&size, &to, theme, "--hide-scrollbars"]);
            assert!(shot.is_file(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

fn open(browser: &Path, page: &Path, words: &[&str]) -> Output {
    let profile = page.with_extension("profile");
    let log = page.with_extension("netlog");
    let output = Command::new("timeout")
        .args(["-s", "KILL", SECONDS_MAX])
        .arg(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND"])
        .args(["--enable-logging=stderr", "--v=0"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--log-net-log={}", log.display()))
        .args(words)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("timeout and the browser are there");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {:?}: {said}", page.display(), output.status);
    let complaints: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(complaints.is_empty(), "{}: {complaints:?}", page.display());
    let log = fs::read_to_string(&log).expect("the browser keeps a log of what it asks for");
    assert!(log.contains("\"constants\""), "a log of another form");
    let wanted = requests(&log);
    assert!(wanted.is_empty(), "{} wants {wanted:?}", page.display());
    let _none = fs::remove_dir_all(&profile);
    output
}

/// What the page wanted of the network: everything but itself, data, and the browser's own.
fn requests(log: &str) -> Vec<&str> {
    let urls = log.split("\"url\":\"").skip(1).map(|rest| rest.split('"').next().unwrap_or(""));
    let is_outside = |url: &&str| {
        !url.starts_with("file:")
            && !url.starts_with("data:")
            && !url.starts_with("blob:")
            && !url.starts_with("chrome")
            && !url.starts_with("about:")
    };
    // The browser asks after itself whatever it opens.
    let is_own = |url: &&str| {
        ["google.com/", "googleapis.com/", "gvt1.com/", "gstatic.com/"]
            .iter()
            .any(|own| url.contains(own))
    };
    urls.filter(is_outside).filter(|url| !is_own(url)).collect()
}

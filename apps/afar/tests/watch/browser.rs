//! Chromium as a person uses it, asked over its debugging pipe (the DevTools protocol: JSON that
//! ends with a zero byte): what the page shows, what it asked for, what it complained of.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::Scratch;

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// For whatever is waited for.
const LIMIT: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(100);
/// The pipes of the protocol are descriptors 3 and 4.
const SHELL: &str = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";

/// A page that is open.
pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: String,
    number: u64,
    /// What the page has asked for.
    pub(crate) requests: Vec<String>,
    /// What the browser has complained of, such as what the page's policy forbids.
    pub(crate) complaints: Vec<String>,
    _profile: Scratch,
}

/// The browser, if there is one.
pub(crate) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let found = NAMES.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
    found.into_iter().find(|program| program.is_file())
}

impl Browser {
    /// Opens a page.
    pub(crate) fn open(program: &PathBuf, url: &str) -> Self {
        let profile = Scratch::new("watch-profile");
        let mut child = Command::new("sh")
            .args(["-c", SHELL])
            .arg(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update"])
            .args(["--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-pipe"])
            .arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let input = child.stdin.take().expect("it is a pipe");
        let output = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let mut browser = Self {
            child,
            input,
            output,
            session: String::new(),
            number: 0,
            requests: Vec::new(),
            complaints: Vec::new(),
            _profile: profile,
        };
        let made = browser.ask("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": made["targetId"], "flatten": true});
        let attached = browser.ask("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Network.enable", "Log.enable", "Runtime.enable", "Page.enable"] {
            browser.ask(domain, json!({}));
        }
        browser.ask("Page.navigate", json!({"url": url}));
        browser
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let text = format!("{message}\0");
        self.input.write_all(text.as_bytes()).expect("the browser listens");
        loop {
            let mut bytes = Vec::new();
            self.output.read_until(0, &mut bytes).expect("the browser answers");
            assert_eq!(bytes.pop(), Some(0), "the browser has ended");
            let answer: Value = serde_json::from_slice(&bytes).expect("it is JSON");
            if answer["id"] == self.number {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" => {
                let url = params["request"]["url"].as_str().unwrap_or_default();
                self.requests.push(url.to_owned());
            }
            "Log.entryAdded" => {
                let (text, from) = (&params["entry"]["text"], &params["entry"]["source"]);
                self.complaints.push(format!("{from}: {text}"));
            }
            "Runtime.exceptionThrown" => self.complaints.push(params.to_string()),
            _ => {}
        }
    }

    /// What a script in the page comes to.
    pub(crate) fn run(&mut self, script: &str) -> Value {
        let asked = json!({"expression": script, "returnByValue": true});
        self.ask("Runtime.evaluate", asked)["result"]["value"].clone()
    }

    /// What a person reads.
    pub(crate) fn text(&mut self) -> String {
        self.run("document.body.innerText").as_str().unwrap_or_default().to_owned()
    }

    /// Waits until a person reads `wanted`; all of what they read then.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, wanted: &str) -> String {
        let start = Instant::now();
        loop {
            let text = self.text();
            if text.contains(wanted) {
                return text;
            }
            assert!(start.elapsed() < LIMIT, "{wanted:?} does not come: {text}");
            sleep(POLL);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

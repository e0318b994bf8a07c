//! The page of `ichor certs report`, opened in a real browser.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use fantoccini::actions::{InputSource as _, KeyAction, KeyActions};
use fantoccini::key::Key;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use serde_json::{Value, json};
use talos_sim::Options;

use crate::cli::program::Lab;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs chromium and chromedriver"]
async fn the_page_shows_findings_and_expiries_and_is_used_by_keyboard() {
    let lab = Lab::start(Options {
        workers: 1,
        ..Options::default()
    })
    .await;
    let file = lab.home.path().join("report.html");
    let path = file.to_str().unwrap();
    let ran = lab.run(&[
        "certs",
        "report",
        "--expect",
        "apid=lb.example",
        "--html",
        path,
    ]);
    assert_eq!(ran.code, Some(3), "{ran:?}");

    let driver = Driver::start();
    let browser = driver.browser().await;
    for scheme in ["light", "dark"] {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        ask(
            &browser,
            "goog/cdp/execute",
            json!({"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}}),
        )
        .await;
        browser.goto(&format!("file://{path}")).await.unwrap();
        shows_what_was_found(&browser).await;
        is_readable(&browser, scheme).await;
        is_used_by_keyboard(&browser).await;
        let picture = browser.screenshot().await.unwrap();
        assert!(picture.starts_with(b"\x89PNG"), "{scheme}");
        let folder = env!("CARGO_TARGET_TMPDIR");
        std::fs::write(format!("{folder}/certs-report-{scheme}.png"), picture).unwrap();
    }
    let console = ask(&browser, "se/log", json!({"type": "browser"})).await;
    assert_eq!(console, json!([]), "the console has errors");
    browser.close().await.unwrap();
}

async fn shows_what_was_found(browser: &Client) {
    let text = |selector: &'static str| async move {
        let element = browser.find(Locator::Css(selector)).await.unwrap();
        assert!(element.is_displayed().await.unwrap(), "{selector}");
        element.text().await.unwrap()
    };
    let findings = text("#findings").await;
    assert!(
        findings.contains("lb.example is not in subjectAltName"),
        "{findings}"
    );
    assert!(findings.contains("ichor patch mc -n "), "{findings}");
    assert!(text("#timeline").await.contains("apid"));
    assert!(text("#names").await.contains("lb.example"));
    let bars = browser
        .find_all(Locator::Css("#timeline rect"))
        .await
        .unwrap();
    assert!(!bars.is_empty());
}

/// Asks for the contrast that WCAG 2 wants of text, 4.5 to 1, of everything that has text of its own.
async fn is_readable(browser: &Client, scheme: &str) {
    let script = r"
        const parse = color => color.match(/[\d.]+/g).map(Number);
        const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
            .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
        const behind = element => {
            for (let at = element; at; at = at.parentElement) {
                const color = parse(getComputedStyle(at).backgroundColor);
                if (color.length < 4 || color[3] > 0) return color;
            }
            return [255, 255, 255];
        };
        const texts = [...document.body.querySelectorAll('*')].filter(element =>
            [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim()));
        return texts.filter(element => {
            const style = getComputedStyle(element);
            const color = element.closest('svg') ? style.fill : style.color;
            const pair = [light(parse(color)), light(behind(element))].sort((a, b) => b - a);
            return (pair[0] + 0.05) / (pair[1] + 0.05) < 4.5;
        }).map(element => element.outerHTML.slice(0, 80));
    ";
    let faint = browser.execute(script, Vec::new()).await.unwrap();
    assert_eq!(faint, json!([]), "{scheme}: too little contrast");
}

async fn is_used_by_keyboard(browser: &Client) {
    let active = async |attribute: &str| {
        let element = browser.active_element().await.unwrap();
        element.attr(attribute).await.unwrap().unwrap_or_default()
    };
    press(browser, Key::Tab).await;
    assert_eq!(active("class").await, "skip", "the first stop");
    press(browser, Key::Enter).await;
    let url = browser.current_url().await.unwrap();
    assert_eq!(url.fragment(), Some("findings"));
    press(browser, Key::Tab).await;
    let summary = browser.active_element().await.unwrap();
    assert_eq!(summary.tag_name().await.unwrap(), "summary");
    let open = async || {
        let details = browser.find(Locator::Css("details")).await.unwrap();
        details.attr("open").await.unwrap().is_some()
    };
    assert!(open().await);
    press(browser, Key::Enter).await;
    assert!(!open().await, "Enter folds a finding");
    press(browser, Key::Enter).await;
    assert!(open().await);
}

async fn press(browser: &Client, key: Key) {
    let value = char::from(key);
    let keys = KeyActions::new("keyboard".to_owned())
        .then(KeyAction::Down { value })
        .then(KeyAction::Up { value });
    browser.perform_actions(keys).await.unwrap();
}

/// A driver of the browser, which ends with this value.
struct Driver {
    process: Child,
    port: u16,
}

impl Driver {
    fn start() -> Self {
        let mut process = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut ports = lines.map_while(Result::ok).filter_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            port.trim_end_matches('.').parse().ok()
        });
        let port = ports.next().unwrap();
        Self { process, port }
    }

    async fn browser(&self) -> Client {
        let capabilities = json!({
            "goog:chromeOptions": {
                "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,1600"],
            },
            "goog:loggingPrefs": {"browser": "ALL"},
        });
        let Value::Object(capabilities) = capabilities else {
            unreachable!()
        };
        ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{}", self.port))
            .await
            .unwrap()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// A command of this driver that the standard does not have.
#[derive(Debug)]
struct Extra {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Extra {
    fn endpoint(
        &self,
        base: &url::Url,
        session: Option<&str>,
    ) -> Result<url::Url, url::ParseError> {
        base.join(&format!(
            "session/{}/{}",
            session.unwrap_or_default(),
            self.path
        ))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.body.to_string()))
    }
}

async fn ask(browser: &Client, path: &'static str, body: Value) -> Value {
    browser.issue_cmd(Extra { path, body }).await.unwrap()
}

// How this browser shows the page: theme, language, digits, keys.
import { lang, said, t } from "../i18n";
import { connection } from "../state/live";
import {
  chooseDigits,
  chooseEditorKeys,
  chooseLang,
  chooseTheme,
  digits,
  editorKeys,
  THEMES,
  theme,
} from "../state/prefs";
import { KEYS } from "../ui/keylist";

export function SettingsPage() {
  return (
    <div class="scroll grow pad column" style={{ gap: "20px" }}>
      <div class="row wrap">
        <b style={{ width: "140px" }}>{t("settings.theme")}</b>
        <span class="segments" role="group" aria-label={t("settings.theme")}>
          {THEMES.map((one) => (
            <button key={one} aria-pressed={theme.value === one} onClick={() => chooseTheme(one)}>
              {said("theme", one)}
            </button>
          ))}
        </span>
      </div>
      <div class="row wrap">
        <b style={{ width: "140px" }}>{t("settings.lang")}</b>
        <span class="segments" role="group" aria-label={t("settings.lang")}>
          <button aria-pressed={lang.value === "en"} onClick={() => chooseLang("en")}>
            English
          </button>
          <button aria-pressed={lang.value === "zh"} lang="zh" onClick={() => chooseLang("zh")}>
            中文
          </button>
        </span>
      </div>
      <label class="row wrap">
        <b style={{ width: "140px" }}>{t("settings.digits")}</b>
        <input
          type="number"
          min="2"
          max="17"
          value={digits.value}
          onInput={(event) => chooseDigits(Math.min(17, Math.max(2, Number(event.currentTarget.value) || 4)))}
        />
      </label>
      <label class="row wrap">
        <b style={{ width: "140px" }}>{t("settings.keys")}</b>
        <input type="checkbox" checked={editorKeys.value} onChange={() => chooseEditorKeys(!editorKeys.value)} />
        <span>{t("settings.editorKeys")}</span>
      </label>
      <p class="dim">{t("settings.server", { version: connection.value.server || "–" })}</p>
      <h2>{t("help.title")}</h2>
      <dl class="key-table" style={{ maxWidth: "520px" }}>
        {KEYS.map(([keys, words]) => [
          <dt key={keys}>
            {keys.split(" ").map((one) => (
              <kbd key={one}>{one}</kbd>
            ))}
          </dt>,
          <dd key={words}>{t(words)}</dd>,
        ])}
      </dl>
    </div>
  );
}

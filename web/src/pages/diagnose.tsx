// Why a run does not learn: causes with evidence, line and change at the left; pictures and what was checked at the right.
import { signal, useSignalEffect } from "@preact/signals";
import { lang, t } from "../i18n";
import { ask } from "../net/api";
import { runName, state } from "../state/run";
import type { DiagnosisFinding, DiagnosisView, FamilyView } from "../types.gen";
import { Card, Command, Empty, Skeleton } from "../ui/card";
import { Spark } from "../ui/spark";
import "../styles/diagnose.css";

const found = signal<{ run: string; view: DiagnosisView } | null>(null);

export function DiagnosePage() {
  useSignalEffect(() => {
    const run = runName.value;
    // Live: once in a while, because a look at the facts is all that can change the verdict.
    void Math.floor((state.value?.step ?? 0) / 50);
    void state.value?.phase;
    if (!run) return;
    ask<DiagnosisView>(`runs/${encodeURIComponent(run)}/diagnosis`, { lang: lang.value }).then(
      (view) => {
        if (runName.peek() === run) found.value = { run, view };
      },
      () => {},
    );
  });
  const view = found.value?.run === runName.value ? found.value.view : null;
  if (!view) return <Skeleton rows={6} />;
  if (!view.known) {
    return <Empty title={t("diagnose.unknown")} command="misstep run --level guard python train.py" />;
  }
  const causes = view.findings.filter((one) => !one.cause && one.severity !== "info");
  const rest = view.findings.filter((one) => one.cause || one.severity === "info");
  return (
    <div class="scroll grow pad diagnosis" data-test="diagnosis">
      <div class="column gap diagnosis-main">
        {causes.length === 0 && (
          <Card
            tone="ok"
            test="healthy"
            title={t("diagnose.healthy", { rules: view.rules, steps: view.steps, looks: view.looks })}
          />
        )}
        {causes.map((one) => (
          <Cause key={one.rule} one={one} />
        ))}
        {rest.map((one) => (
          <Card key={one.rule} tone="dim" title={one.title} test="consequence">
            <span class="dim">
              {one.cause ? t("diagnose.consequence", { cause: one.cause }) : t("diagnose.hint")} · {one.rule}
            </span>
          </Card>
        ))}
      </div>
      <div class="column gap diagnosis-side">
        {view.losses.length > 1 && (
          <Picture title={t("diagnose.loss")}>
            <Spark points={view.losses} width={320} height={70} />
          </Picture>
        )}
        {view.layers.length > 1 && (
          <Picture title={t("diagnose.gradients")} help={t("diagnose.gradients.help")}>
            <Spark points={view.gradients.map(logarithm)} width={320} height={70} />
          </Picture>
        )}
        {view.layers.length > 0 && (
          <Picture title={t("diagnose.updates")} help={t("diagnose.updates.help")}>
            <Bars values={view.updates} names={view.layers} />
          </Picture>
        )}
        <Picture title={t("diagnose.checked")}>
          {view.families.map((one) => (
            <Family key={one.name} one={one} />
          ))}
        </Picture>
      </div>
    </div>
  );
}

function Cause({ one }: { one: DiagnosisFinding }) {
  const sure = Math.round((one.confidence ?? 1) * 100);
  return (
    <Card tone={one.severity === "error" ? "error" : "warning"} title={one.title} test="cause">
      <span class="dim">
        {t(one.severity === "error" ? "diagnose.cause" : "diagnose.look", { sure })} · <code>{one.rule}</code>
      </span>
      {one.source && <code class="diagnosis-line">{one.source}</code>}
      {one.evidence.map((line) => (
        <span key={line} class="answer-evidence">
          {line}
        </span>
      ))}
      <span>
        <b>{t("diagnose.fix")}:</b> {one.advice}
      </span>
      {one.step !== null && <Command text={`misstep show ${runName.value}`} />}
    </Card>
  );
}

function Picture({ title, help, children }: { title: string; help?: string; children: preact.ComponentChildren }) {
  return (
    <section class="diagnosis-picture column">
      <h3>{title}</h3>
      {help && <span class="dim">{help}</span>}
      {children}
    </section>
  );
}

function Family({ one }: { one: FamilyView }) {
  const mark = one.findings ? String(one.findings) : one.missing.length ? t("diagnose.partly") : t("diagnose.fine");
  return (
    <div class="diagnosis-family" title={one.missing.join("\n")}>
      <span class="grow">{one.label}</span>
      <span class={one.findings ? "error" : one.missing.length ? "dim" : "ok"}>{mark}</span>
      {!one.findings && one.missing.length > 0 && <span class="dim diagnosis-missing">{one.missing.join("; ")}</span>}
    </div>
  );
}

function Bars({ values, names }: { values: readonly (number | null)[]; names: readonly string[] }) {
  const width = 320 / Math.max(1, values.length);
  return (
    <svg width="100%" height="70" viewBox="0 0 320 70" preserveAspectRatio="none" role="img">
      <title>{t("diagnose.updates")}</title>
      {values.map((one, at) => {
        const moves = one !== null && one > 0;
        const tall = moves ? Math.max(3, 66 * Math.min(1, (6 + Math.log10(one)) / 6)) : 3;
        return (
          <rect
            key={names[at]}
            x={at * width + 1}
            y={70 - tall}
            width={Math.max(1, width - 2)}
            height={tall}
            fill={moves ? "var(--accent)" : "var(--error)"}
          />
        );
      })}
    </svg>
  );
}

function logarithm(value: number | null): number | null {
  return value !== null && value > 0 ? Math.log10(value) : null;
}

// Stacks of every thread: the failing line first, the program's own frames with their variables, libraries folded away.
import { useSignal } from "@preact/signals";
import { t } from "../i18n";
import type { CrashReport, FrameView, ThreadView } from "../types.gen";
import { Icon } from "../ui/icons";

export function Stacks({ report }: { report: CrashReport }) {
  return (
    <div class="column gap">
      {report.threads.map((thread, at) => (
        <Thread key={at} thread={thread} />
      ))}
      {!report.threads.length && !Object.keys(report.stacks).length && <p class="dim">{t("crash.noStack")}</p>}
      {report.machine.length > 0 && (
        <section class="card">
          <h2>{t("crash.machine")}</h2>
          <pre tabIndex={0}>{report.machine.join("\n")}</pre>
        </section>
      )}
      {Object.entries(report.stacks).map(([name, text]) => (
        <section key={name} class="card">
          <h2>{t("crash.faultStack", { name })}</h2>
          <pre class="dim" tabIndex={0}>
            {text}
          </pre>
        </section>
      ))}
      {report.kernel_threads.length > 0 && (
        <section class="card">
          <h2>{t("crash.kernel")}</h2>
          <table>
            <thead>
              <tr>
                <th class="number">id</th>
                <th>{t("crash.thread")}</th>
                <th>{t("ranks.phase")}</th>
                <th>{t("crash.waitsIn")}</th>
              </tr>
            </thead>
            <tbody>
              {report.kernel_threads.map((one) => (
                <tr key={one.id}>
                  <td class="number">{one.id}</td>
                  <td class="mono">{one.name}</td>
                  <td class="mono">{one.state}</td>
                  <td class="mono">{one.waits_in === "0" ? "–" : one.waits_in || "–"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </div>
  );
}

type Piece = FrameView | FrameView[];

/** Innermost first; neighbours of libraries as one piece. */
function pieces(frames: readonly FrameView[]): Piece[] {
  const out: Piece[] = [];
  for (const frame of [...frames].reverse()) {
    const last = out.at(-1);
    if (!frame.library) out.push(frame);
    else if (Array.isArray(last)) last.push(frame);
    else out.push([frame]);
  }
  return out;
}

function Thread({ thread }: { thread: ThreadView }) {
  return (
    <section class="card stack" data-test="stack">
      <h2>{thread.main ? t("crash.threadMain") : thread.name}</h2>
      <ol>
        {pieces(thread.frames).map((piece, at) =>
          Array.isArray(piece) ? <Libraries key={at} frames={piece} /> : <Frame key={at} frame={piece} />,
        )}
      </ol>
    </section>
  );
}

function Libraries({ frames }: { frames: FrameView[] }) {
  const open = useSignal(false);
  return (
    <li>
      <button class="plain dim" aria-expanded={open.value} onClick={() => (open.value = !open.value)}>
        <Icon name={open.value ? "down" : "right"} />
        {t("crash.libraries", { n: frames.length })}
      </button>
      {open.value && (
        <ol>
          {frames.map((frame, at) => (
            <Frame key={at} frame={frame} />
          ))}
        </ol>
      )}
    </li>
  );
}

function Frame({ frame }: { frame: FrameView }) {
  const variables = Object.entries(frame.locals);
  return (
    <li class={frame.library ? "dim" : ""}>
      <div class="row wrap">
        <span class="mono wrap-anywhere">
          {frame.file}:{frame.line}
        </span>
        <span class="dim mono">{frame.function}</span>
      </div>
      {frame.code && <pre class={frame.library ? "" : "code"}>{frame.code}</pre>}
      {variables.length > 0 && (
        <dl class="locals">
          {variables.map(([name, value]) => (
            <div key={name}>
              <dt class="mono">{name}</dt>
              <dd class="mono wrap-anywhere">{value}</dd>
            </div>
          ))}
        </dl>
      )}
    </li>
  );
}

// A long answer on its way: how far it is, and the button that ends it.
import { count, seconds } from "../format/number";
import { t } from "../i18n";
import { Icon } from "../ui/icons";
import type { Work, Worker } from "./job";
import { w } from "./words";

export function Progress<T>({ worker, again }: { worker: Worker<T>; again: () => void }) {
  const work: Work<T> = worker.work.value;
  if (work.state === "working") {
    const { job } = work;
    return (
      <div class="row progress" role="status" data-test="progress">
        <progress
          max={job?.total || undefined}
          value={job?.total ? job.done : undefined}
          aria-label={w("job.working")}
        />
        <span class="mono">
          {job?.total ? w("job.of", { done: count(job.done), total: count(job.total) }) : w("job.opening")}
          {job ? ` · ${seconds(job.seconds)}` : ""}
        </span>
        <button onClick={() => void worker.cancel()} disabled={!job} data-test="cancel">
          <Icon name="stop" />
          {t("cancel")}
        </button>
      </div>
    );
  }
  if (work.state === "failed")
    return (
      <div class="banner error" role="alert" data-test="job-failed">
        <Icon name="cross" />
        <span class="wrap-anywhere">{work.text}</span>
        <button onClick={again}>{w("job.again")}</button>
      </div>
    );
  if (work.state === "cancelled")
    return (
      <div class="banner info" role="status" data-test="job-cancelled">
        <Icon name="stop" />
        {w("job.cancelled")}
        <button onClick={again}>{w("job.again")}</button>
      </div>
    );
  return null;
}

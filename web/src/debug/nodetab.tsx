// A node: what goes in, what comes out, with statistics and a small history; one click leads to the neighbours.

import { api } from "../base";
import { slotKey } from "../format/address";
import { count } from "../format/number";
import { said, t } from "../i18n";
import { chooseNode, chosenItem, chosenNode, info, infoProblem, keyOf } from "../state/debug";
import { change } from "../state/route";
import { graph, runName } from "../state/run";
import type { Neighbour, NodeInfo, TensorBrief } from "../types.gen";
import { Icon } from "../ui/icons";
import { Classes, Dtype, Measure } from "../ui/marks";
import { Spark } from "../ui/spark";

export function NodeTab() {
  const node = info.value;
  if (!chosenItem.value)
    return (
      <div class="empty">
        <p>{t("node.none")}</p>
      </div>
    );
  if (infoProblem.value && !node)
    return (
      <div class="empty">
        <h2>{chosenNode.value}</h2>
        <p>{infoProblem.value}</p>
      </div>
    );
  if (!node) return <ScopeSummary />;
  return (
    <div class="column gap pad">
      <Facts node={node} />
      <table>
        <thead>
          <tr>
            <th>{t("node.tensor")}</th>
            <th>{t("node.kind")}</th>
            <th>{t("node.statistics")}</th>
            <th>{t("node.trend")}</th>
            <th />
          </tr>
        </thead>
        <tbody>
          {node.tensors.map((one) => (
            <TensorLine key={one.address} one={one} />
          ))}
        </tbody>
      </table>
      {!node.tensors.length && <p class="dim">{t("node.noTensors")}</p>}
      <div class="row wrap" style={{ alignItems: "flex-start", gap: "24px" }}>
        <Neighbours title={t("node.producers")} all={node.producers} />
        <Neighbours title={t("node.consumers")} all={node.consumers} />
      </div>
    </div>
  );
}

function Facts({ node }: { node: NodeInfo }) {
  return (
    <div class="row wrap">
      <b class="mono">{node.name}</b>
      <span class="chip">{node.type}</span>
      <span class="dim">{said("crash.phase", node.phase)}</span>
      {node.order > 0 && <span class="dim mono">{t("node.order", { n: count(node.order) })}</span>}
      {node.source && (
        <button class="plain mono" onClick={() => change({ tab: "source" }, true)}>
          <Icon name="file" />
          {node.source.file.split("/").pop()}:{node.source.line}
        </button>
      )}
      {node.forward && (
        <button class="plain mono" onClick={() => jump(node.forward)}>
          {t("node.forward")} {node.forward}
        </button>
      )}
      {node.hits.length > 0 && (
        <span class="tone-error row" style={{ gap: "4px" }}>
          <Icon name="target" />
          {t("node.hits", { n: count(node.hits.length) })}
        </span>
      )}
    </div>
  );
}

function TensorLine({ one }: { one: TensorBrief }) {
  const key = slotKey(one);
  return (
    <tr class="pick" onClick={() => change({ slot: key, slice: null, tab: "tensor" }, true)}>
      <td class="mono nowrap">{key}</td>
      <td>{one.stats ? <Dtype name={one.stats.dtype} dims={one.stats.shape} /> : <span class="dim">–</span>}</td>
      <td>
        {one.stats ? (
          <span class="row wrap" style={{ gap: "4px 10px" }}>
            <Measure name="min" of={one.stats.min} />
            <Measure name="max" of={one.stats.max} />
            <Measure name="mean" of={one.stats.mean} />
            <Classes stats={one.stats} />
          </span>
        ) : (
          <span class="dim">{t("node.notSeen")}</span>
        )}
      </td>
      <td>
        <Spark points={one.spark} />
      </td>
      <td class="nowrap right">
        <button
          class="plain"
          title={t("node.view")}
          onClick={(event) => {
            event.stopPropagation();
            change({ slot: key, slice: null, tab: "tensor" }, true);
          }}
        >
          <Icon name="stats" />
          <span class="hidden-visually">
            {t("node.view")} {key}
          </span>
        </button>
        <button
          class="plain"
          title={t("node.compare")}
          onClick={(event) => {
            event.stopPropagation();
            change({ slot: key, slice: null, tab: "compare" }, true);
          }}
        >
          <Icon name="ranks" />
          <span class="hidden-visually">
            {t("node.compare")} {key}
          </span>
        </button>
        {one.available && (
          <a
            class="button plain"
            download
            href={api(`runs/${encodeURIComponent(runName.value)}/npy`, { address: one.address })}
            title={t("tensor.download")}
            onClick={(event) => event.stopPropagation()}
          >
            <Icon name="download" />
            <span class="hidden-visually">
              {t("tensor.download")} {key}
            </span>
          </a>
        )}
      </td>
    </tr>
  );
}

function Neighbours({ title, all }: { title: string; all: Neighbour[] }) {
  if (!all.length) return null;
  return (
    <div class="column" style={{ gap: "2px" }}>
      <h2 class="dim">{title}</h2>
      {all.slice(0, 30).map((one, at) => (
        <button key={at} class="plain mono" style={{ justifyContent: "flex-start" }} onClick={() => jump(one.node)}>
          {one.node} {one.dtype && <Dtype name={one.dtype} dims={one.shape} />}
        </button>
      ))}
      {all.length > 30 && <span class="dim">{t("more", { n: count(all.length - 30) })}</span>}
    </div>
  );
}

function jump(name: string): void {
  chooseNode(keyOf(name));
}

/** A scope that is no node itself: what lies in it. */
function ScopeSummary() {
  const model = graph.value;
  const item = chosenItem.value;
  if (!model || model.node[item] >= 0)
    return (
      <div class="empty">
        <p>{t("loading")}</p>
      </div>
    );
  return (
    <div class="column gap pad">
      <div class="row">
        <b class="mono">{model.name(item) || model.label[item]}</b>
        <span class="dim">{t("node.scope", { n: count(model.size[item]) })}</span>
      </div>
      <table>
        <thead>
          <tr>
            <th>{t("node.inside")}</th>
            <th>{t("node.type")}</th>
            <th class="number">{t("node.operators")}</th>
          </tr>
        </thead>
        <tbody>
          {model.children[item].slice(0, 200).map((child) => (
            <tr key={child} class="pick" onClick={() => chooseNode(model.key[child])}>
              <td class="mono">
                <button class="plain" onClick={() => chooseNode(model.key[child])}>
                  {model.label[child]}
                </button>
              </td>
              <td class="dim">{model.type(child)}</td>
              <td class="number">{count(model.size[child])}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// One tensor of a dump or a checkpoint in the tensor pane of the debugger.
import { useSignal, useSignalEffect } from "@preact/signals";
import { api } from "../base";
import { NotHere, TensorPane, WrongSlice } from "../debug/tensortab";
import { TensorWindow } from "../debug/window";
import { t } from "../i18n";
import { query } from "../state/route";

const eyes = new TensorWindow();

export function HeldTensor({ of, address }: { of: string; address: string }) {
  const wanted = useSignal({ of, address });
  if (wanted.peek().of !== of || wanted.peek().address !== address) wanted.value = { of, address };
  useSignalEffect(() => {
    const now = wanted.value;
    void eyes.look({ path: "things/tensor", query: { of: now.of } }, now.address, query.value.slice ?? "");
  });
  const loaded = eyes.loaded.value;
  if (loaded.state === "ready" && loaded.address === address) {
    return (
      <TensorPane
        pane={loaded.pane}
        desk={{ path: "things/tensor", query: { of } }}
        window={eyes}
        download={api("things/npy", { of, address })}
      />
    );
  }
  if (loaded.state === "wrong") return <WrongSlice text={loaded.text} example={loaded.example} />;
  if (loaded.state === "missing") return <NotHere address={address} reason={loaded.reason} text={loaded.text} />;
  return (
    <div class="empty">
      <p>{t("loading")}</p>
    </div>
  );
}

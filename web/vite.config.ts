// Built into the Python package: relative addresses everywhere, so that the page works below any path prefix.
import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/misstep/hub/static",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    reportCompressedSize: true,
  },
  worker: { format: "es" },
  server: { proxy: { "/api": { target: process.env.MISSTEP_URL ?? "http://127.0.0.1:8008", ws: true } } },
  test: { environment: "node", include: ["tests/**/*.test.ts"] },
});

// The bytes of a tile as numbers. 64-bit integers stay exact as bigint; everything else is a plain typed array.

export type Values =
  | Float32Array
  | Float64Array
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;

const KINDS: Record<string, { new (buffer: ArrayBuffer): Values; BYTES_PER_ELEMENT: number }> = {
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  uint8: Uint8Array,
  bool: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
};

export function valuesOf(data: ArrayBuffer, dtype: string): Values {
  const kind = KINDS[dtype];
  if (!kind) throw new Error(`the hub sent ${dtype}, which this page cannot read`);
  const whole = data.byteLength - (data.byteLength % kind.BYTES_PER_ELEMENT);
  return new kind(whole === data.byteLength ? data : data.slice(0, whole));
}

/** As a plain number, for colours and charts; a large int64 loses its last digits here and nowhere else. */
export function plainNumber(value: number | bigint): number {
  return typeof value === "bigint" ? Number(value) : value;
}

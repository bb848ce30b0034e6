import { namespace } from '../operator/contract.ts'
import { grpcCaConfigMap } from '../registration/contract.ts'

/** What writes the CA of a hub's gRPC endpoint into a file, run on the hub. */
export const caCommand = (file: string): string => {
  const { name, key } = grpcCaConfigMap
  const path = `{.data.${key.replaceAll('.', '\\.')}}`
  return `kubectl -n ${namespace.hub} get configmap ${name} -o jsonpath='${path}' > ${file}`
}

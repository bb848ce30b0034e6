import type { DeploymentConfig, Manifest } from './definition.ts'

interface Container {
  name: string
  image?: string
  env?: { name: string; value?: string }[]
  volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[]
  resources?: unknown
}

export interface PodSpec {
  containers?: Container[]
  initContainers?: Container[]
  nodeSelector?: Record<string, string>
  tolerations?: unknown[]
  volumes?: { name: string; [source: string]: unknown }[]
}

/** The manifest with its pods changed; itself when it makes none. */
export const withPods = (manifest: Manifest, change: (pods: PodSpec) => PodSpec): Manifest => {
  if (!['Deployment', 'DaemonSet', 'StatefulSet', 'Job'].includes(manifest.kind ?? '')) return manifest
  const spec = manifest['spec'] as { template?: { spec?: PodSpec } } | undefined
  if (!spec?.template?.spec) return manifest
  return { ...manifest, spec: { ...spec, template: { ...spec.template, spec: change(spec.template.spec) } } }
}

/** Each container, the ones that run first too. */
export const withContainers = (pods: PodSpec, change: (container: Container) => Container): PodSpec => ({
  ...pods,
  ...(pods.containers && { containers: pods.containers.map(change) }),
  ...(pods.initContainers && { initContainers: pods.initContainers.map(change) }),
})

/** What is set already stays: the author knows better. */
export const withEnvironment = (container: Container, env: Readonly<Record<string, string>>): Container => {
  const present = new Set(container.env?.map(({ name }) => name))
  const missing = Object.entries(env).filter(([name]) => !present.has(name))
  if (missing.length === 0) return container
  return { ...container, env: [...(container.env ?? []), ...missing.map(([name, value]) => ({ name, value }))] }
}

/** Applies an AddOnDeploymentConfig to whatever runs pods: where they run, with what, from where, and through which proxy. */
export const customize = (manifest: Manifest, config: DeploymentConfig): Manifest =>
  withPods(manifest, (pods) => {
    const { nodeSelector, tolerations } = config.nodePlacement ?? {}
    const placed = {
      ...pods,
      ...(nodeSelector && { nodeSelector: { ...pods.nodeSelector, ...nodeSelector } }),
      ...(tolerations && { tolerations: [...(pods.tolerations ?? []), ...tolerations] }),
    }
    return withContainers(placed, (container) => {
      const resources = resourcesFor(manifest, container.name, config)
      return withEnvironment(
        {
          ...container,
          ...(container.image && { image: imageFrom(container.image, config.registries ?? []) }),
          ...(resources === undefined ? {} : { resources }),
        },
        proxyEnvironment(config),
      )
    })
  })

/** An image from its mirror: the longest source that it begins with counts; an empty one takes every image by its last part. */
export const imageFrom = (
  image: string,
  registries: readonly { mirror: string; source?: string | undefined }[],
): string => {
  const fitting = registries.filter(
    ({ source = '' }) => source === '' || image.startsWith(`${source.replace(/\/$/, '')}/`),
  )
  const [best] = fitting.toSorted((a, b) => (b.source ?? '').length - (a.source ?? '').length)
  if (!best) return image
  const mirror = best.mirror.replace(/\/$/, '')
  const source = (best.source ?? '').replace(/\/$/, '')
  return `${mirror}/${source === '' ? image.split('/').at(-1)! : image.slice(source.length + 1)}`
}

const proxyEnvironment = ({ proxyConfig = {} }: DeploymentConfig): Record<string, string> => {
  const { httpProxy, httpsProxy, noProxy } = proxyConfig
  const said = Object.entries({ HTTP_PROXY: httpProxy, HTTPS_PROXY: httpsProxy, NO_PROXY: noProxy })
  // Programs read one spelling or the other.
  return Object.fromEntries(
    said.flatMap(([name, value]) =>
      value
        ? [
            [name, value],
            [name.toLowerCase(), value],
          ]
        : [],
    ),
  )
}

/** `containerID` is `<resource>:<name>:<container>`, and `*` stands for any; the last entry that fits counts. */
const resourcesFor = (manifest: Manifest, container: string, config: DeploymentConfig): unknown => {
  const parts = [`${manifest.kind!.toLowerCase()}s`, manifest.metadata.name ?? '', container]
  const fits = (id: string): boolean => {
    const said = id.split(':')
    return said.length === 3 && said.every((part, i) => part === '*' || part === parts[i])
  }
  return config.resourceRequirements?.findLast(({ containerID }) => fits(containerID))?.resources
}

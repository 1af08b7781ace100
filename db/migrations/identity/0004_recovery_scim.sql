CREATE TABLE "identity"."scim_groups" (
	"id" uuid PRIMARY KEY NOT NULL,
	"provider" text NOT NULL,
	"external_id" text,
	"display_name" text NOT NULL,
	"version" bigint DEFAULT 1 NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "identity"."scim_members" (
	"group_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	CONSTRAINT "scim_members_group_id_user_id_pk" PRIMARY KEY("group_id","user_id")
);
--> statement-breakpoint
CREATE TABLE "identity"."scim_users" (
	"user_id" uuid PRIMARY KEY NOT NULL,
	"provider" text NOT NULL,
	"external_id" text,
	"user_name" text NOT NULL,
	"folded" text NOT NULL,
	"display_name" text,
	"disabled_at" timestamp with time zone,
	"removed" boolean DEFAULT false NOT NULL,
	"version" bigint DEFAULT 1 NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "identity"."users" ADD COLUMN "recovering" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "identity"."scim_members" ADD CONSTRAINT "scim_members_group_id_scim_groups_id_fk" FOREIGN KEY ("group_id") REFERENCES "identity"."scim_groups"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "identity"."scim_members" ADD CONSTRAINT "scim_members_user_id_scim_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "identity"."scim_users"("user_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "identity"."scim_users" ADD CONSTRAINT "scim_users_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "identity"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "scim_groups_provider_external_id_index" ON "identity"."scim_groups" USING btree ("provider","external_id");--> statement-breakpoint
CREATE UNIQUE INDEX "scim_groups_provider_display_name_index" ON "identity"."scim_groups" USING btree ("provider","display_name");--> statement-breakpoint
CREATE INDEX "scim_members_user_id_index" ON "identity"."scim_members" USING btree ("user_id");--> statement-breakpoint
CREATE UNIQUE INDEX "scim_users_provider_external_id_index" ON "identity"."scim_users" USING btree ("provider","external_id");--> statement-breakpoint
CREATE UNIQUE INDEX "scim_users_provider_folded_index" ON "identity"."scim_users" USING btree ("provider","folded");